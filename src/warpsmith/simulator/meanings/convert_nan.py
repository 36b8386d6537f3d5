"""What cvt makes of NaN between floating-point types, as an H200 does it: sign and payload survive some conversions only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.formats import FORMATS
from warpsmith.simulator.meanings.forms import Form

__all__ = ["nan_codes"]

Codes = NDArray[Any]
_DOUBLE_EXPONENT_QUIET = np.uint64(0x7FF8 << 48)
_MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
_EXPONENT = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000}


def _widened(codes: Codes, source: str) -> Codes:
    """Sign and payload of a narrower NaN in f64, made quiet."""
    word = codes.astype(np.uint64)
    bits = _MANTISSA[source]
    sign = word >> np.uint64(FORMATS[source].bits - 1) << np.uint64(63)
    payload = (word & np.uint64((1 << bits) - 1)) << np.uint64(52 - bits)
    return sign | _DOUBLE_EXPONENT_QUIET | payload


def _narrowed(codes: Codes, to: str) -> Codes:
    """Sign and upper payload of an f64 NaN in a narrower type, made quiet."""
    bits = _MANTISSA[to]
    sign = codes >> np.uint64(63) << np.uint64(FORMATS[to].bits - 1)
    payload = codes >> np.uint64(52 - bits) & np.uint64((1 << bits) - 1)
    return sign | np.uint64(_EXPONENT[to] | 1 << (bits - 1)) | payload


def nan_codes(form: Form) -> Callable[[Codes], Codes]:
    """Return the function from the source's codes (unsigned) to the result's codes where the source is NaN."""
    to, source = form.types[-2], form.types[-1]
    if to == source and form.rounding is None and not form.ftz and to in ("f32", "f64"):
        return lambda codes: codes
    if to == source == "f64":
        return lambda codes: codes | np.uint64(1 << 51)
    if to == "f64" and not (source == "f32" and form.ftz):
        return lambda codes: _widened(codes, source)
    if source == "f64":
        return lambda codes: _narrowed(codes, to)
    if (to, source) == ("f32", "bf16") and not form.ftz:
        return lambda codes: codes.astype(np.uint32) << np.uint32(16)
    if to == "tf32" and form.rounding == "rna":
        step = np.uint32(0x2000 if "satfinite" in form else 0)
        return lambda codes: (codes & np.uint32(0xFFFFE000)) - step
    constant = {"f64": 0x7FFFFFFFE0000000, "tf32": 0x7FFFE000}.get(to, FORMATS[to].nan or 0)
    return lambda codes: np.full(codes.shape, constant, np.uint64)
