"""The multi-function unit of Hopper, bit for bit: EX2, LG2, RCP, RSQ, SQRT, SIN, COS, TANH on f32.

Measured on an H200: `hardware/mufu_capture.py` captures the tables and verifies these functions over all 2³² inputs. What was
found, with T the table of a function, m the 23 fraction bits and e the exponent of the operand:

    RCP    sign · T[m] · 2^−e
    RSQ    T[e mod 2, m] · 2^−⌊e/2⌋;  SQRT T[e mod 2, m] · 2^⌊e/2⌋
    EX2    k = ⌊|x|·2²³⌋, one's complement when x < 0;  T[k mod 2²³] · 2^⌊k/2²³⌋;  integers are exact
    LG2    T₀[m] for e = 0, T₋₁[m] for e = −1; above, e + T₀[m], below, e + 1 + T₋₁[m], truncated towards zero
    SIN    of turns: k = ⌊|y|·2²⁵⌋ mod 2²⁵, quarters mirrored by one's complement;  COS y = SIN (k + 2²³)
    RCP64H, RSQ64H  on the upper words of f64: as RCP and RSQ, with tables of 20 fraction bits
    TANH   x below 2⁻⁸, 1 from 8; between, T of the leading fraction bits (17 to 21 of them, by exponent)

Subnormal operands are zeros and subnormal results become zeros, except for TANH.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.tables import differences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]
    I64 = NDArray[np.int64]

__all__ = [
    "TANH_BUCKETS", "TURNS", "cos", "ex2", "lg2", "rcp", "rcp64h", "rsq", "rsq64h", "sin", "sqrt", "table", "tanh", "turns",
]  # fmt: skip

_FRACTION = (1 << 23) - 1
_NAN, _INF, _SIGN = 0x7FFFFFFF, 0x7F800000, 0x80000000
TURNS = np.uint32(0x3E22F983).view(np.float32)
"""1/2π as sin.approx and cos.approx multiply it, rounding towards zero."""
TANH_BUCKETS = {119: 6, 120: 6, 121: 6, 122: 5, 123: 5, 124: 4, 125: 4, 126: 4, 127: 3, 128: 2, 129: 3}
"""Biased exponent -> how many trailing fraction bits tanh ignores."""


@cache
def table(name: str) -> NDArray[np.uint32]:
    """Return a captured table as the bits of f32 values."""
    return differences.load(Path(__file__).parents[1] / "tables" / f"mufu-sm_90-{name}.table", np.uint32)


def _bits(x: Any) -> I64:
    return np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.int64)


def _float(bits: Any) -> F32:
    return np.asarray(bits).astype(np.uint32).view(np.float32)


def _fields(x: Any) -> tuple[I64, I64, I64]:
    """Return (bits of the magnitude, biased exponent, fraction)."""
    b = _bits(x) & ~np.int64(_SIGN)
    return b, b >> 23, b & _FRACTION


def _finish(x: Any, result: I64, zero: Any, infinite: Any, sign: Any) -> F32:
    """Flush a result whose exponent left the range, then put in what zero, infinite and NaN operands give."""
    magnitude, exponent, _ = _fields(x)
    result = np.where(result < (1 << 23), 0, np.where(result >= _INF, _INF, result))
    result = np.where(exponent == 0, zero, result)
    result = np.where(magnitude == _INF, infinite, result) | sign
    return _float(np.where(magnitude > _INF, _NAN, result))


def rcp(x: F32) -> F32:
    """MUFU.RCP."""
    _, e, m = _fields(x)
    return _finish(x, table("rcp")[m].astype(np.int64) - ((e - 127) << 23), _INF, 0, _bits(x) & _SIGN)


def rsq(x: F32) -> F32:
    """MUFU.RSQ."""
    _, e, m = _fields(x)
    odd = (e - 127) & 1
    r = table("rsq")[(odd << 23) | m].astype(np.int64) - (((e - 127 - odd) >> 1) << 23)
    return _real_only(x, _finish(x, r, _INF | (_bits(x) & _SIGN), 0, 0))


def sqrt(x: F32) -> F32:
    """MUFU.SQRT."""
    _, e, m = _fields(x)
    odd = (e - 127) & 1
    r = table("sqrt")[(odd << 23) | m].astype(np.int64) + (((e - 127 - odd) >> 1) << 23)
    return _real_only(x, _finish(x, r, _bits(x) & _SIGN, _INF, 0))


def _real_only(x: F32, result: F32) -> F32:
    """NaN for negative operands that are not flushed to zero."""
    b = _bits(x)
    return np.where((b >> 31 == 1) & (b & 0x7F800000 != 0), _float(_NAN), result)


def ex2(x: F32) -> F32:
    """MUFU.EX2."""
    x = np.ascontiguousarray(x, np.float32)
    size = np.abs(x)
    ordinary = size < 126
    if ordinary.all():
        return _ex2_ordinary(x, size)
    out = _ex2_ordinary(*(np.where(ordinary, v, np.float32(0)) for v in (x, size)))
    out[~ordinary] = _ex2_any(x[~ordinary])
    return out


def _ex2_ordinary(x: F32, size: F32) -> F32:
    """EX2 within ±126, where results are normal and 32 bits hold everything; `size` is |x|."""
    k = (size * np.float32(1 << 23)).astype(np.int32)
    sign = x.view(np.int32) >> 31
    at = k ^ sign
    r = table("ex2")[at & _FRACTION].view(np.int32) + ((at >> 23) << 23)
    whole = (k >> 23 ^ sign) - sign
    return np.where(k & _FRACTION == 0, (127 + whole) << 23, r).view(np.float32)


def _ex2_any(x: F32) -> F32:
    x64 = np.clip(np.nan_to_num(np.asarray(x, np.float32).astype(np.float64)), -256, 256)
    k = (np.abs(x64) * 2.0**23).astype(np.int64)
    whole, exact = k >> 23, k & _FRACTION == 0
    k = np.where(x64 < 0, ~k, k)
    r = table("ex2")[k & _FRACTION].astype(np.int64) + ((k >> 23) << 23)
    r = np.where(exact, (127 + np.where(x64 < 0, -whole, whole)) << 23, r)
    positive = _bits(x) >> 31 == 0
    return _finish(x, r, 127 << 23, np.where(positive, _INF, 0), 0)


def lg2(x: F32) -> F32:
    """MUFU.LG2."""
    b, e, m = _fields(x)
    at = table("lg2")
    below = e < 127
    base = at[np.where(below, m, m | (1 << 23))].view(np.float32).astype(np.float64)
    whole = np.where(below, e - 126, e - 127).astype(np.float64)
    r = np.where(whole == 0, base.astype(np.float32), _towards_zero(base + whole))
    r = np.where(e == 0, np.float32(-np.inf), np.where(b == _INF, np.float32(np.inf), r)).astype(np.float32)
    wrong = (b > _INF) | ((_bits(x) >> 31 == 1) & (e != 0))
    return np.where(wrong, _float(_NAN), r)


def _towards_zero(x: Any) -> F32:
    """Truncate float64 to f32 (normal range)."""
    cut = np.ascontiguousarray(x, np.float64).view(np.uint64) & np.uint64(~((1 << 29) - 1) & ((1 << 64) - 1))
    return cut.view(np.float64).astype(np.float32)


def turns(x: F32) -> F32:
    """Multiply by 1/2π rounding towards zero, as the code before MUFU.SIN and MUFU.COS does."""
    return _towards_zero(np.asarray(x, np.float32).astype(np.float64) * np.float64(TURNS))


def _wave(k: I64, sign: Any) -> I64:
    """Bits of sine after k of 2²⁵ parts of a turn."""
    i = np.where((k >> 23) & 1 == 1, ~k, k) & _FRACTION
    return table("sin")[i].astype(np.int64) | ((((k >> 24) & 1) << 31) ^ sign)


def _parts(y: F32) -> I64:
    """|y| turns in 2⁻²⁵ parts, within one turn."""
    y64 = np.abs(np.nan_to_num(np.asarray(y, np.float32).astype(np.float64), posinf=0.0, neginf=0.0))
    return (np.floor(np.fmod(y64, 1.0) * 2.0**25)).astype(np.int64)


def sin(y: F32) -> F32:
    """MUFU.SIN of an angle in turns."""
    b = _bits(y)
    r = _wave(_parts(y), b & _SIGN)
    return _float(np.where((b & 0x7F800000) == _INF, _NAN, r))


def cos(y: F32) -> F32:
    """MUFU.COS of an angle in turns."""
    r = _wave((_parts(y) + (1 << 23)) & ((1 << 25) - 1), 0)
    return _float(np.where((_bits(y) & 0x7F800000) == _INF, _NAN, r))


@cache
def _tanh_shape() -> tuple[Any, Any]:
    """Start of each exponent's entries in the table, and its ignored bits; both `[256]`."""
    start, ignored, at = np.zeros(256, np.int64), np.full(256, 23), 0
    for exponent, bits in TANH_BUCKETS.items():
        start[exponent], ignored[exponent] = at, bits
        at += 1 << (23 - bits)
    return start, ignored


def tanh(x: F32) -> F32:
    """MUFU.TANH."""
    b, e, m = _fields(x)
    start, ignored = _tanh_shape()
    inside = (e >= min(TANH_BUCKETS)) & (e <= max(TANH_BUCKETS))
    at = np.where(inside, start[e] + (m >> ignored[e]), 0)
    r = np.where(inside, table("tanh")[at].astype(np.int64), np.where(e < min(TANH_BUCKETS), b, 127 << 23))
    return _float(np.where(b > _INF, _NAN, r | (_bits(x) & _SIGN)))


def _upper(x: Any) -> tuple[I64, I64, I64, Any]:
    """Return (sign bit, biased exponent, 20 fraction bits, whether NaN) of upper words of f64."""
    b = np.asarray(x).astype(np.int64)
    return b & _SIGN, (b >> 20) & 0x7FF, b & 0xFFFFF, (b & ~_SIGN) > 0x7FF00000


def rcp64h(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """MUFU.RCP64H: upper words of f64 to those of reciprocals."""
    sign, e, m, nan = _upper(x)
    r = table("rcp64h")[m].astype(np.int64) - ((e - 1023) << 20)
    r = np.where(r < (1 << 20), 0, r)
    r = np.where(e == 0, 0x7FF00000, np.where(e == 0x7FF, 0, r)) | sign
    return np.where(nan, _NAN, r).astype(np.uint32)


def rsq64h(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """MUFU.RSQ64H: upper words of f64 to those of reciprocal square roots."""
    sign, e, m, nan = _upper(x)
    odd = (e - 1023) & 1
    r = table("rsq64h")[(odd << 20) | m].astype(np.int64) - (((e - 1023 - odd) >> 1) << 20)
    r = np.where(e == 0, 0x7FF00000 | sign, np.where(e == 0x7FF, 0, r))
    return np.where(nan | ((sign != 0) & (e != 0)), _NAN, r).astype(np.uint32)
