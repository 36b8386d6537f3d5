"""Kernels around generated instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa.shapes import POOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["module"]

_REGISTERS = 300
_FUNCTIONS = """.global .align 16 .b8 gvar[64];
.func (.reg .b32 x) function_ra(.reg .b32 y) { mov.b32 x, y; ret; }
.func function_a(.reg .b32 y) { ret; }
.func function_() { ret; }
.func (.param .align 16 .b8 x[64]) function_param() { ret; }
"""
_PROTOTYPES = (
    "$prototype_ra: .callprototype (.reg .b32 _) _ (.reg .b32 _); $prototype_a: .callprototype _ (.reg .b32 _); "
    "$prototype_: .callprototype _ ();"
)

_RETURNED = "{{ .param .align 16 .b8 local[64]; call (local), function_param; {} }}"
"""A load of a returned value needs its call."""


def module(texts: Sequence[str], *, version: str, target: str, per_kernel: int = 60) -> tuple[str, dict[int, int]]:
    """Return a PTX module of the instructions, and for each of its lines (from 1) the index of the instruction on it."""
    out = [f".version {version}", f".target {target}", ".address_size 64", *_FUNCTIONS.split("\n")]
    lines: dict[int, int] = {}
    for start in range(0, len(texts), per_kernel):
        chunk = texts[start : start + per_kernel]
        joined = " ".join(chunk)
        out.append(f".visible .entry kernel_{start}(.param .align 64 .b8 formal[128])")
        out.append("{ .param .align 16 .b8 local[64];")
        out += [f".reg .{t} {p}<{_REGISTERS}>;" for t, p in POOLS.items() if p in joined or t == "pred"]
        if "$targets" in joined:
            out.append("$targets: .branchtargets $target;")
        if "$prototype" in joined:
            out.append(_PROTOTYPES)
        for n, text in enumerate(chunk):
            out.append(_RETURNED.format(text) if "ld." in text and "::func" in text else text)
            lines[len(out)] = start + n
        out.append("$target: ret; }")
    return "\n".join(out) + "\n", lines
