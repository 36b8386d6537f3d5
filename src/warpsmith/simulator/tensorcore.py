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
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator import aligned_sum
from warpsmith.simulator.tensor_rounding import Rounding, round_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]
    F64 = NDArray[np.float64]

__all__ = ["MIN_EXPONENT", "Rule", "exact", "fast", "integer", "rule_for"]

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
    step = max(1, _CHUNK // (m * n))
    with np.errstate(all="ignore"):
        ready = aligned_sum.prepare(a, b, rule)
        for i in range(0, flat.shape[0], step):
            some = slice(i, i + step)
            for at in range(0, k, rule.block):
                part = slice(at, min(at + rule.block, k))
                if ready is None or not aligned_sum.add_block(some, part, ready, flat[some], rule):
                    _block(a[some, :, part], b[some, part], flat[some], rule)
    return out


def _exponents(x: F32, smallest: int) -> NDArray[np.int16]:
    """Return the exponent each value is aligned with: floor(log2 |x|), not below `smallest`; zeros give `_ZERO`."""
    e = np.frexp(x)[1].astype(np.int16) - np.int16(1)
    np.maximum(e, smallest, out=e)
    e[x == 0] = _ZERO
    return e


def _block(a: F32, b: F32, c: F32, rule: Rule) -> None:
    """Add one block of products to `c[i, m, n]` in place, in double precision: for extreme exponents, infinities and NaNs."""
    ea, eb = _exponents(a, rule.min_a), _exponents(b, rule.min_b)
    largest = np.where(c == 0, np.int16(rule.zero), _exponents(c, rule.min_c))
    np.maximum(largest, (ea[:, :, None, :] + eb.swapaxes(1, 2)[:, None]).max(-1), out=largest)
    zeros = (a == 0).any(2)[:, :, None] | (b == 0).any(1)[:, None, :]
    if zeros.any():
        np.maximum(largest, rule.zero, out=largest, where=zeros)
    scale = _power(rule.fraction - largest.astype(np.int64))
    total = np.trunc(c * scale)
    left, right = a.astype(np.float64), b.astype(np.float64)
    for k in range(a.shape[2]):
        total += np.trunc(left[:, :, k, None] * right[:, k, None, :] * scale)
    total *= _power(largest.astype(np.int64) - rule.fraction)
    c[...] = round_sums(total, rule.rounding)


def _power(exponent: NDArray[np.int64]) -> F64:
    """Return 2**exponent as float64, by building its bits (exponents within the normal range)."""
    return ((exponent + 1023) << 52).view(np.float64)


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
