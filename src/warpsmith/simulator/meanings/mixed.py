"""Mixed-precision arithmetic (PTX ISA 9.7.5): f16 or bf16 factors and summands with an f32 sum, rounded once to f32.

Packed forms: `.f32x2` results of halves, and `.bf16x2` results of f32 operands, rounded towards zero (twice so is once so).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from warpsmith.simulator.meanings import float as single
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.half import element_of, load, truncate
from warpsmith.simulator.meanings.packed import elements
from warpsmith.simulator.meanings.registry import Refused, refuse

__all__ = ["mixed", "mixed_pairs"]

Fn = Callable[..., None]


def mixed(form: Form) -> Fn:
    """Build add, sub or fma of `.f32.f16` or `.f32.bf16`: the last operand is f32, those before it are halves."""
    kind = form.types[1]
    inner = single.BUILDERS[form.opcode](replace(form, types=("f32",)))

    def fn(out: Any, *operands: Any) -> None:
        *halves, last = operands
        inner(out, *(load(h, kind) for h in halves), last)

    return fn


_HALF, _SINGLE = np.dtype(np.uint16), np.dtype(np.float32)


def mixed_pairs(form: Form) -> Fn | Refused:
    """Build add, sub, mul or fma of packed operands of several types."""
    to, first = form.types[0], form.types[1]
    if to == "f32x2":
        return _widened(form, element_of(first))
    if first != "f32x2":
        return refuse("whether the product of f16x2 and bf16x2 converts its factor first, and how, is left open")
    if to != "bf16x2":
        return refuse("what .ftz flushes in sums and products of f32x2 rounded to f16x2 is left open")
    if form.rounding != "rz":
        return refuse("how sums of f32x2 without .rz are rounded to bf16x2 is left open")
    inner = single.BUILDERS[form.opcode](replace(form, types=("f32",)))

    def narrowed(out: Any, *operands: Any) -> None:
        values = [elements(x, _SINGLE, np.shape(out)) for x in operands]
        result = np.empty(values[0].shape, np.float32)
        inner(result, *values)
        out[...] = truncate(result, "bf16").view(out.dtype)

    return narrowed


def _widened(form: Form, kind: str) -> Fn:
    """Build `.f32x2` of a packed half and f32x2 operands."""
    inner = single.BUILDERS[form.opcode](replace(form, types=("f32",)))

    def widened(out: Any, a: Any, *rest: Any) -> None:
        shape = np.shape(out)
        halves = load(elements(a, _HALF, shape), kind)
        result = np.empty(halves.shape, np.float32)
        inner(result, halves, *(elements(x, _SINGLE, shape) for x in rest))
        out[...] = result.view(out.dtype)

    return widened
