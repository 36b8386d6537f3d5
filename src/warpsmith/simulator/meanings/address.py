"""Address arithmetic: cvta, isspacep (PTX ISA 9.7.9.20, 9.7.9.19), mapa, getctarank (9.7.9.24, 9.7.9.25)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.access import FUNCTION_PARAM
from warpsmith.simulator.meanings.registry import in_place, machine, pure
from warpsmith.simulator.memory import CONST_WINDOW, GLOBAL_BASE, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from warpsmith.simulator.shared_address import place_of, rank_of, window_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes

__all__ = ["cvta", "getctarank", "isspacep", "mapa"]

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "const": CONST_WINDOW, "param": PARAM_WINDOW, "global": 0}
_LOW = np.uint64((1 << 40) - 1)


def _space(m: Match) -> str:
    return str(m["space"]).partition("::")[0]


@pure("cvta")
def cvta(m: Match) -> Callable[..., None]:
    """Build cvta: a space's address to its generic one, or back with `.to`."""
    window = np.uint64(_WINDOWS[_space(m)])
    to = "to" in m.mnemonic.split(".")

    @in_place
    def generic(out: Any, a: Any) -> None:
        np.add(a, window, out=out, casting="unsafe")

    @in_place
    def back(out: Any, a: Any) -> None:
        if window:
            np.bitwise_and(a, _LOW, out=out, casting="unsafe")
        else:
            np.copyto(out, a)

    return back if to else generic


@machine("isspacep")
def isspacep(m: Match) -> Callable[..., None]:
    """Build isspacep: whether a generic address falls within a space (for shared::cta: of the executing CTA)."""
    space = str(m["space"])

    def fn(x: Lanes, p: Any, a: Any) -> None:
        high, low = a >> np.uint64(40), a & _LOW
        if space.startswith("shared"):
            own = x.machine.cta_numbers["%cluster_ctarank"][0, x.c0 : x.c1, None]
            inside = (high == 1) & (low >> np.uint64(24) == own) if space != "shared::cluster" else high == 1
        elif space == "global":
            # kernel parameters lie in the window of global memory (9.7.10.22)
            inside = ((a >= np.uint64(GLOBAL_BASE)) & (high >= 0x70)) | (high == PARAM_WINDOW >> 40)
        else:
            inside = high == _WINDOWS[_space(m)] >> 40
        if space == "param::func":
            inside = inside & (low >= FUNCTION_PARAM)
        x.put(p, np.broadcast_to(inside, x.shape))

    return fn


@machine("mapa")
def mapa(m: Match) -> Callable[..., None]:
    """Build mapa: the address of the same place in the shared memory of another CTA of the cluster."""
    generic = m.get("space") is None

    def fn(x: Lanes, d: Any, a: Any, rank: Any) -> None:
        value = np.asarray(a).astype(np.int64)
        low = place_of(value)
        bad = np.broadcast_to(np.asarray(rank).astype(np.int64) >= x.machine.cluster_size, x.shape) & x.active()
        if bad.any():
            size = x.machine.cluster_size
            wrong = int(np.broadcast_to(rank, x.shape)[bad][0])
            message = f"`{x.op.text}` names CTA rank {wrong} of a cluster of {size}"
            x.finding("out-of-bounds", message, lanes=bad, repair="keep the rank below %cluster_nctarank", stop=True)
        mapped = window_of(np.asarray(rank).astype(np.int64)) | low
        x.put(d, (mapped | SHARED_WINDOW if generic else mapped).astype(d.dtype))

    return fn


@machine("getctarank")
def getctarank(m: Match) -> Callable[..., None]:
    """Build getctarank: the rank of the CTA whose shared memory an address falls in."""

    def fn(x: Lanes, d: Any, a: Any) -> None:
        rank = rank_of(np.asarray(a).astype(np.int64)) & 0xFFFF
        x.put(d, np.broadcast_to(rank, x.shape).astype(np.uint32))

    del m
    return fn
