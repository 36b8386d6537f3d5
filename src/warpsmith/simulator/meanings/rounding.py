"""Exact rounding of float64 values and error-free transformations.

A float64 that stands for an inexact result must have been rounded to odd (`odd_sum`); one more rounding to a format of at
most 51 bits of precision is then the correct rounding of the exact result (Boldo and Melquiond, 2008).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.formats import Format

__all__ = ["force_odd", "odd_sum", "overflow", "quantize", "round_integral", "round_to", "two_product", "two_sum"]

F64 = NDArray[np.float64]


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly, barring overflow."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _split(a: F64) -> tuple[F64, F64]:
    t = a * 134217729.0
    high = t - (t - a)
    return high, a - high


def two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """Return (p, e) with p = fl(a * b) and p + e = a * b exactly, for magnitudes far from both ends of the range."""
    p = a * b
    ah, al = _split(a)
    bh, bl = _split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def force_odd(s: F64, e: F64) -> F64:
    """Round s + e to odd, given that s is the nearest float64 and e the exact remainder (0 or NaN: s unchanged)."""
    bits = s.view(np.int64)
    fix = (e != 0) & (e == e) & ((bits & 1) == 0) & np.isfinite(s)
    # away from zero when the remainder has the sign of s, towards it otherwise: one step of the magnitude
    step = np.where((e > 0) == (s > 0), np.int64(1), np.int64(-1))
    return np.where(fix, bits + step, bits).view(np.float64)


def odd_sum(a: F64, b: F64) -> F64:
    """Return a + b rounded to odd."""
    s, e = two_sum(a, b)
    return force_odd(np.atleast_1d(s), np.atleast_1d(e)).reshape(np.shape(s))


def round_integral(y: F64, mode: str) -> F64:
    """Round to an integer: rn (ties to even), rz, rm, rp, rna (ties away from zero)."""
    if mode == "rn":
        return np.rint(y)
    if mode == "rz":
        return np.trunc(y)
    if mode == "rm":
        return np.floor(y)
    if mode == "rp":
        return np.ceil(y)
    magnitude = np.abs(y)
    low = np.floor(magnitude)
    return np.copysign(low + (magnitude - low >= 0.5), y)


def quantize(x: F64, precision: int, emin: int, mode: str) -> F64:
    """Round to `precision` bits with subnormals below 2^emin; the exponent is not bounded above. Keeps signs of zero."""
    exponent = np.frexp(x)[1] - 1
    quantum = np.maximum(exponent, emin) - (precision - 1)
    y = round_integral(np.ldexp(x, -quantum), mode)
    out = np.ldexp(y, quantum)
    return np.where(np.isfinite(x), np.copysign(out, x), x)


def overflow(x: F64, fmt: Format, mode: str) -> F64:
    """Replace values beyond the largest finite one by infinity or that value, as the rounding mode says."""
    over = (np.abs(x) > fmt.largest) & np.isfinite(x)
    if not over.any():
        return x
    limit = np.where(_goes_to_infinity(x, mode), np.inf, fmt.largest)
    return np.where(over, np.copysign(limit, x), x)


def _goes_to_infinity(x: F64, mode: str) -> NDArray[np.bool_]:
    if mode == "rm":
        return x < 0
    if mode == "rp":
        return x > 0
    return np.full(np.shape(x), mode != "rz")


def round_to(x: F64, fmt: Format, mode: str = "rn") -> F64:
    """Round float64 values to a format, overflow included; the result is float64."""
    return overflow(quantize(x, fmt.precision, fmt.emin, mode), fmt, mode)
