"""Arithmetic of four packed 8-, 6- or 4-bit floats with 8-bit results (PTX ISA 9.7.6): exact, then rounded once.

In float64 products are exact. A sum is not if its summands lie more than 40 bits apart; the larger is then representable in the
result's format or beyond it, so that the smaller does not move the rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.formats import FORMATS, decode, encode
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.rounding import round_to

__all__ = ["narrow"]

F64 = NDArray[np.float64]
Fn = Callable[..., None]


def narrow(form: Form) -> Fn:
    """Build add, sub, mul or fma of packed narrow floats; results beyond the largest e4m3 are NaN, without `.satfinite`."""
    to, *sources = form.types
    kinds = sources if form.opcode == "mul" else [*sources, to]
    fmt = FORMATS[to.removesuffix("x4")]

    def fn(out: Any, *operands: Any) -> None:
        total = np.zeros(np.shape(out), np.uint32)
        for i in range(4):
            values = [_element(x, kind, i) for x, kind in zip(operands, kinds, strict=True)]
            with np.errstate(invalid="ignore"):
                exact = _compute(form.opcode, *values)
            r = round_to(exact, fmt)
            if "satfinite" in form:
                r = np.clip(r, -fmt.largest, fmt.largest)
            elif fmt.infinity is None:
                r = np.where(np.isinf(r), np.nan, r)
            total |= encode(r, fmt.name).astype(np.uint32) << np.uint32(8 * i)
        out[...] = total

    return fn


def _element(word: Any, kind: str, i: int) -> F64:
    """Element `i`: four of e2m1x4 fill 16 bits, those of every other type have a byte each, whose upper bits may not count."""
    width = 4 if kind == "e2m1x4" else 8
    code = np.asarray(word).astype(np.uint32) >> np.uint32(width * i) & np.uint32(0xFF)
    return decode(code.astype(np.uint8), kind.removesuffix("x4").removesuffix("p4"))


def _compute(opcode: str, a: F64, b: F64, c: F64 | None = None) -> F64:
    if opcode in ("mul", "fma"):
        return a * b if c is None else a * b + c
    return a + b if opcode == "add" else a - b
