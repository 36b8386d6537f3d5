"""Instructions that are recognised and not modelled, with the reason their refusal gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.simulator.meanings.registry import Refused, machine, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.ptx.isa import Match

__all__: list[str] = []

_REASONS = {
    "multicast objects span several devices, and one is simulated": ("multimem",),
    "textures, samplers and surfaces have no model": ("tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"),
    "rows move `downwards`, all `except the last` (9.7.18.9.3): whether to higher or to lower lanes, and among those of a warp "
    "or of all, is not said": ("tcgen05.shift",),
    "fabric operations reach the memory of other GPUs, and one is simulated": ("fabric",),
    "in which order registers hold elements and their indices is left to a figure": ("spcompress", "spdecompress"),
    "allocation classes of tensor maps have no model": ("tensormap.query.alloc_class_large",),
}


def _refusal(reason: str) -> Callable[[Match], Refused]:
    return lambda _: refuse(reason)


for _reason, _opcodes in _REASONS.items():
    machine(*_opcodes)(_refusal(_reason))
