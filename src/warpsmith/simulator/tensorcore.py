"""What a tensor core computes: D = A·B + C, bit for bit (`exact`) or by the processor's own matrix product (`fast`).

The exact model is the truncated fused dot product that published hardware tests agree on (MMA-Sim, arXiv 2511.10909;
Khattak and Mikaitis, arXiv 2512.07004). Per block of `k` products: every product and C is aligned to the largest
exponent, truncated toward zero to `fraction` bits, summed without error, and rounded once. Longer dot products chain
blocks through the accumulator.

Operands are float32 arrays that hold the narrow values exactly (every type up to tf32 fits), `a[..., m, k]`, `b[..., k, n]`
and `c[..., m, n]`; leading axes are a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from warpsmith.base.errors import CapabilityError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]
    F64 = NDArray[np.float64]

__all__ = ["MIN_EXPONENT", "Rule", "exact", "fast", "integer", "round_sums", "rule_for"]

Rounding = Literal["rz32", "rz_e8m13", "rne16"]

MIN_EXPONENT = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14, "e2m3": 0, "e3m2": -2, "e2m1": 0}
"""Exponent of the smallest normal number, by element type; subnormals are aligned with this exponent."""

_CHUNK = 32768
"""Sums computed at once: their terms stay in the second-level cache."""
_ZERO = -8192
"""Stands for the exponent of a zero operand; two of them still fit int16."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How one instruction of one architecture adds up."""

    fraction: int
    """Bits kept below the largest exponent."""
    block: int
    """Products per fused sum."""
    zero: int
    """Exponent that a zero product or a zero C takes part with."""
    rounding: Rounding
    min_a: int
    """Smallest normal exponent of A's type; `min_b` and `min_c` the same of B's and C's."""
    min_b: int
    min_c: int


# compute capability major·10+minor (from) -> (fraction, bytes per block)
_ALIGNMENT = ((70, 23, 8), (75, 24, 16), (90, 25, 32))


@cache
def rule_for(capability: int, a: str, b: str, d: str, c: str = "", *, wgmma: bool = False, volta_shape: bool = False) -> Rule:
    """Return the rule of a floating-point MMA with operand types `a`, `b`, result type `d` and C of type `c` (f32, f16).

    `capability` is the number of `sm_NN`; `volta_shape` marks m8n8k4, which Turing runs as Volta does.
    Raise `CapabilityError` for what the published model does not cover.
    """
    if capability < 70:
        raise CapabilityError(f"simulator: tensor cores of sm_{capability} are not modelled")
    if volta_shape and capability >= 80:
        raise CapabilityError(f"simulator: `mma.m8n8k4` with f16 on sm_{capability} is not modelled exactly; use m16n8k8")
    fraction, size = next((f, n) for since, f, n in reversed(_ALIGNMENT) if capability >= since)
    if volta_shape:
        fraction, size = 23, 8
    zero = (-21 if d == "f16" else -133) + 25 - fraction
    eight_bit = a in ("e4m3", "e5m2") and b in ("e4m3", "e5m2")
    rounding: Rounding = "rne16" if d == "f16" else "rz32"
    if eight_bit and (wgmma or capability == 89):
        fraction = 13
        rounding = "rne16" if d == "f16" else "rz_e8m13"
    width = {"tf32": 4, "f16": 2, "bf16": 2}.get(a, 1)
    return Rule(fraction, size // width, zero, rounding, MIN_EXPONENT[a], MIN_EXPONENT[b], -14 if (c or d) == "f16" else -126)


def fast(a: F32, b: F32, c: F32 | None, *, half: bool = False) -> F32:
    """Return A·B + C in float32 (`c` None: no C); `half` rounds the result to f16 values."""
    d = np.matmul(a, b)
    if c is not None:
        d += c
    return d.astype(np.float16).astype(np.float32) if half else d


def exact(a: F32, b: F32, c: F32 | None, rule: Rule) -> F32:
    """Return A·B + C as the tensor core of `rule` computes it; f16 results come back as float32 values."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    out = np.empty((*batch, m, n), np.float32)
    a = np.broadcast_to(a, (*batch, m, k)).reshape(-1, m, k)
    b = np.broadcast_to(b, (*batch, k, n)).reshape(-1, k, n)
    flat = out.reshape(-1, m, n)
    if c is None:
        flat[...] = 0
    else:
        flat[...] = np.broadcast_to(c, out.shape).reshape(flat.shape)
    with np.errstate(all="ignore"):
        exponents = _exponents(a, rule.min_a), _exponents(b, rule.min_b)
        step = max(1, _CHUNK // (m * n))
        for at in range(0, k, rule.block):
            part = slice(at, min(at + rule.block, k))
            for i in range(0, flat.shape[0], step):
                some = slice(i, i + step)
                _block(a[some, :, part], b[some, part], exponents[0][some, :, part], exponents[1][some, part], flat[some], rule)
    return out


def _exponents(x: F32, smallest: int) -> NDArray[np.int16]:
    """Return the exponent each value is aligned with: floor(log2 |x|), not below `smallest`; zeros give `_ZERO`."""
    e = np.frexp(x)[1].astype(np.int16) - np.int16(1)
    np.maximum(e, smallest, out=e)
    e[x == 0] = _ZERO
    return e


def _block(a: F32, b: F32, ea: NDArray[np.int16], eb: NDArray[np.int16], c: F32, rule: Rule) -> None:
    """Add one block of products to `c[i, m, n]` in place."""
    ec = _exponents(c, rule.min_c)
    largest = np.where(c == 0, np.int16(rule.zero), ec)
    np.maximum(largest, _largest_sum(ea, eb), out=largest)
    zeros = (a == 0).any(2)[:, :, None] | (b == 0).any(1)[:, None, :]
    if zeros.any():
        np.maximum(largest, rule.zero, out=largest, where=zeros)
    scale = _power(rule.fraction - largest.astype(np.int64))
    if _fits_single(a, b, c, ea, eb, largest, rule):
        total = _sum_single(a, b, scale.astype(np.float32))
    else:
        total = _sum_double(a, b, scale)
    total += np.trunc(c * scale)
    total *= _power(largest.astype(np.int64) - rule.fraction)
    c[...] = round_sums(total, rule.rounding)


class _Scratch:
    """Buffers of one block shape, kept between calls: fresh memory would cost more than the arithmetic."""

    __slots__ = ("exponents", "left", "product", "right", "units")

    def __init__(self, k: int, i: int, m: int, n: int) -> None:
        self.left = np.zeros((k, i, m, 2), np.float32)
        self.right = np.zeros((k, i, 2, n), np.float32)
        self.product = np.empty((k, i, m, n), np.float32)
        self.units = np.empty((k, i, m, n), np.int32)
        self.exponents = np.empty((k, i, m, n), np.int16)


@lru_cache(maxsize=16)
def _scratch(k: int, i: int, m: int, n: int) -> _Scratch:
    return _Scratch(k, i, m, n)


def _largest_sum(ea: NDArray[np.int16], eb: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return max over k of ea[i, m, k] + eb[i, k, n]."""
    sums = _scratch(ea.shape[2], ea.shape[0], ea.shape[1], eb.shape[2]).exponents
    np.add(np.moveaxis(ea, 2, 0)[..., None], np.moveaxis(eb, 1, 0)[:, :, None, :], out=sums)
    return sums.max(0)


def _power(exponent: NDArray[np.int64]) -> F64:
    """Return 2**exponent as float64, by building its bits (exponents within the normal range)."""
    return ((exponent + 1023) << 52).view(np.float64)


def _fits_single(
    a: F32, b: F32, c: F32, ea: NDArray[np.int16], eb: NDArray[np.int16], largest: NDArray[np.int16], rule: Rule
) -> bool:
    """Say whether every step of the block is exact in float32 and int32 arithmetic."""
    low, high = int(largest.min()), int(largest.max())
    if low < rule.fraction - 126 or high > 120 or int(ea.max()) > 60 or int(eb.max()) > 60:
        return False
    if rule.min_a < -60 and (bool((np.abs(a[a != 0]) < 2.0**-50).any()) or bool((np.abs(b[b != 0]) < 2.0**-50).any())):
        return False
    return bool(np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(c).all())


def _sum_single(a: F32, b: F32, scale: F32) -> F64:
    """Return the sum of truncated products in units of the last kept bit.

    A product is below 4·2^fraction ≤ 2^27, so at most 15.99 units of 2^27 add up in 16 terms: int32 holds them.
    """
    total = np.zeros(scale.shape, np.float64)
    for at in range(0, a.shape[2], 16):
        k = min(16, a.shape[2] - at)
        room = _scratch(k, *scale.shape)
        # the outer products as a batch of matrix products two deep (second term zero): much faster than broadcasting
        room.left[..., 0] = np.moveaxis(a[..., at : at + k], 2, 0)
        room.right[:, :, 0, :] = np.moveaxis(b[:, at : at + k], 1, 0)
        np.matmul(room.left, room.right, out=room.product)
        np.multiply(room.product, scale, out=room.product)
        np.copyto(room.units, room.product, casting="unsafe")
        total += room.units.sum(0, dtype=np.int32)
    return total


def _sum_double(a: F32, b: F32, scale: F64) -> F64:
    """Return the same sum in float64, for extreme exponents, infinities and NaNs."""
    total = np.zeros(scale.shape, np.float64)
    left, right = a.astype(np.float64), b.astype(np.float64)
    for k in range(a.shape[2]):
        total += np.trunc(left[:, :, k, None] * right[:, k, None, :] * scale)
    return total


def round_sums(value: F64, rounding: Rounding) -> F32:
    """Round float64 sums to the accumulator's format; NaN becomes the canonical one and −0 becomes +0."""
    if rounding == "rne16":
        half = value.astype(np.float16)
        nan = np.isnan(half)
        out = half.astype(np.float32)
    else:
        drop = 29 if rounding == "rz32" else 39
        bits = value.view(np.int64) & ~((1 << drop) - 1)
        out = bits.view(np.float64).astype(np.float32)
        small = np.abs(value) < 2.0**-126
        if small.any():
            unit = 2.0**-149 if rounding == "rz32" else 2.0**-139
            out[small] = np.trunc(value[small] / unit) * unit
        nan = np.isnan(value)
    out += np.float32(0)
    if nan.any():
        out.view(np.uint32)[nan] = 0x7FFFFFFF
    return out


def integer(a: NDArray[np.int8], b: NDArray[np.int8], c: NDArray[np.int32] | None, *, saturate: bool) -> NDArray[np.int32]:
    """Return A·B + C of 8-bit or narrower integers in 32 bits: wrapping, or clamped when `saturate`.

    Exact through float64: 2^16 · k stays far below 2^53.
    """
    total = np.matmul(a.astype(np.float64), b.astype(np.float64))
    if c is not None:
        total += c
    if saturate:
        return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)
    return total.astype(np.int64).astype(np.int32)
