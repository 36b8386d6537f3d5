"""Stochastic rounding of f32 pairs to bf16x2 (PTX ISA 9.7.10.24, `.rs`).

A magnitude grows by one unit where adding its 16 random bits to the 16 discarded mantissa bits carries out. The upper half
of `rbits` belongs to a, the lower to b. The manual's text leaves open how the random bits line up with the discarded ones
where more bits than random ones are discarded: always for the 8-, 6- and 4-bit types, for subnormal results of f16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.registry import Refused, refuse

__all__ = ["stochastic"]

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
_16, _LOWER = np.uint32(16), np.uint32(0xFFFF)
_SIGN, _INFINITY, _NAN = np.uint32(0x8000), np.uint32(0x7F80), np.uint32(0x7FFF)


def _round(x: F32, random: U32, form: Form) -> U32:
    """Return bf16 codes of f32 values, each with its 16 random bits."""
    word = np.asarray(x).view(np.uint32)
    code: Any = np.add(word, random) >> _16
    if "satfinite" in form:
        code = np.where(code & ~_SIGN == _INFINITY, code - np.uint32(1), code)
    if "relu" in form:
        code = np.where(code & _SIGN != 0, np.uint32(0), code)
    return np.where(np.isnan(x), _NAN, code)


def stochastic(form: Form) -> Callable[..., None] | Refused:
    """Build cvt.rs.bf16x2.f32 d, a, b, rbits; refuse the other destinations."""
    if form.types[-2] != "bf16x2":
        return refuse("stochastic rounding (.rs) is modelled to .bf16x2 only: how random bits line up elsewhere is left open")

    def fn(out: U32, a: F32, b: F32, rbits: U32) -> None:
        random = np.asarray(rbits).view(np.uint32)
        upper = _round(a, random >> _16, form)
        out[...] = upper << _16 | _round(b, random & _LOWER, form)

    return fn
