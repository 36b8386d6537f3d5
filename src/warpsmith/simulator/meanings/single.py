"""What every f32 function needs: flushing subnormals, the canonical NaN, saturation, directed sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.formats import FORMATS
from warpsmith.simulator.meanings.rounding import force_odd, quantize, round_to, two_sum

__all__ = [
    "NAN",
    "TINY",
    "canonical_nan",
    "flush",
    "flush_tiny",
    "has_nan",
    "has_subnormal",
    "near_tiny",
    "ordinary",
    "round_single",
    "saturate",
    "settle",
    "sum_single",
]

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

NAN: Any = np.array([0x7FFFFFFF], np.uint32).view(np.float32)[0]
"""The NaN that f32 arithmetic produces."""
TINY = np.float32(2.0**-126)
_ONE, _ZERO = np.float32(1), np.float32(0)
_F32 = FORMATS["f32"]
_BLAS_LIMIT = 8192
"""Above this many elements a dot product may start threads."""


def has_nan(a: F32) -> bool:
    """Say whether an element is NaN, at the cost of one reduction."""
    if a.size <= _BLAS_LIMIT:
        probe: Any = np.vdot(a, a)  # squares are never negative: NaN exactly when an element is
    else:
        probe = np.maximum.reduce(a, axis=None)
    return probe != probe


def canonical_nan(out: F32) -> None:
    """Replace every NaN of `out` by the canonical one."""
    if has_nan(out):
        np.copyto(out, NAN, where=np.isnan(out))


def ordinary(a: F32) -> bool:
    """Say whether every element is above 2^-126 in magnitude: no zero, subnormal or NaN among them."""
    return bool(np.minimum.reduce(np.abs(a), axis=None, initial=np.inf) > TINY)


def flush_tiny(result: F32, exact: F64, mode: str) -> F32:
    """Flush results that are below 2^-126 before the exponent's lower bound is applied.

    `exact` is the result in float64, exact or rounded to odd: what rounds up to 2^-126 only for want of subnormal places is
    flushed too, as the H200 does.
    """
    tiny = (np.abs(quantize(exact, 24, -1000, mode)) < TINY) & (exact != 0)
    return np.where(tiny, np.copysign(_ZERO, exact.astype(np.float32)), result)


def _smallest(a: F32) -> int:
    """Return twice the bits of the smallest nonzero magnitude, less 1."""
    doubled = np.left_shift(np.asarray(a).view(np.uint32), np.uint32(1)) - np.uint32(1)
    return int(np.minimum.reduce(doubled, axis=None))


def has_subnormal(a: F32) -> bool:
    """Say whether an element is a nonzero number below 2^-126."""
    return not ordinary(a) and _smallest(a) < 0x00FFFFFF


def near_tiny(a: F32) -> bool:
    """Say whether an element is a nonzero number not above 2^-126."""
    return not ordinary(a) and _smallest(a) <= 0x00FFFFFF


def flush(a: F32) -> F32:
    """Return `a` with subnormals replaced by zero of the same sign (`a` itself when it has none)."""
    if np.ndim(a) == 0:
        return a if not 0 < abs(float(a)) < 2.0**-126 else np.copysign(_ZERO, a)
    if not has_subnormal(a):
        return a
    return np.where(np.abs(a) < TINY, np.copysign(_ZERO, a), a)


def saturate(out: F32) -> None:
    """Clamp to [0, 1] in place; NaN and -0 become +0."""
    np.copyto(out, _ZERO, where=~(out > 0))
    np.minimum(out, _ONE, out=out)


def settle(out: F32, ftz: bool, sat: bool) -> None:
    """Finish a result in place: flush, then saturate or make NaNs canonical."""
    if not sat and ordinary(out):
        return
    if ftz and has_subnormal(out):
        np.copyto(out, np.copysign(_ZERO, out), where=np.abs(out) < TINY)
    if sat:
        saturate(out)
    else:
        canonical_nan(out)


def round_single(x: F64, mode: str) -> F32:
    """Round float64 (exact, or rounded to odd) to f32."""
    return round_to(x, _F32, mode).astype(np.float32)


def sum_single(a: F64, b: F64, mode: str) -> F32:
    """Return the float64 sum a + b rounded once to f32."""
    a, b = np.broadcast_arrays(a, b)
    s, e = two_sum(a, b)
    s = force_odd(np.atleast_1d(s), np.atleast_1d(e)).reshape(s.shape)
    if mode == "rm":
        positive = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
        s = np.where((s == 0) & ~positive, -0.0, s)
    return round_single(s, mode)
