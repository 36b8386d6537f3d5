"""Block-scaled products: D = (A · scale_A)(B · scale_B) + C, bit for bit by the published model (MMA-Sim, arXiv 2511.10909).

8-bit containers (kind::mxf8f6f4): a truncated fused dot product whose exponents include those of the scale factors.
4-bit elements (kind::mxf4, mxf4nvf4): products of 16 neighbours add up without error; each such sum, times its two factors,
is aligned by the exponents of the factors alone.

For a sparse A the same is taken of what each row stores and the elements of B that it names: its 32 products (8-bit
containers), or its sums of 16 products (4-bit elements). No source covers sparse products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.scale_factors import MIN_EXPONENT as MIN_FACTOR
from warpsmith.simulator.tensor_rounding import round_sums
from warpsmith.simulator.tensorcore import MIN_EXPONENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.machine import Machine

    F32 = NDArray[np.float32]
    F64 = NDArray[np.float64]

__all__ = ["Scaled", "scaled_product", "sparse_scaled_product"]

_GROUP = 16
_CHUNK = 64
"""Warps computed at once."""


@final
@dataclass(frozen=True, slots=True)
class Scaled:
    """The element types of A and B, the type of the scale factors, and whether elements are packed in 4 bits."""

    a: str
    b: str
    factor: str
    packed: bool

    @property
    def fraction(self) -> int:
        """Bits kept below the largest exponent."""
        return 35 if self.packed else 25

    @property
    def zero(self) -> int:
        """Exponent that a zero takes part with."""
        return -139 if self.packed else -133


def scaled_product(machine: Machine, a: F32, b: F32, c: F32, sa: F64, sb: F64, types: Scaled) -> F32:
    """Return the product of `a[w, m, k]`, `b[w, k, n]`, plus `c[w, m, n]`, with factors `sa[w, m, s]` and `sb[w, n, s]`."""
    machine.counters.tensor_flops += 2 * int(np.prod(a.shape, dtype=np.int64)) * b.shape[-1]
    subject = f"block-scaled {types.a} tensor cores"
    with np.errstate(all="ignore"):
        if machine.numerics == "fast":
            machine.fidelity.note(
                subject, "approximate", 'products were computed in float64 by numpy (numerics="fast"), not bit for bit'
            )
            return _fast(a, b, c, sa, sb)
        terms = "sums of 16 products" if types.packed else "products"
        deep = a.shape[-1] == 96
        machine.fidelity.note(
            f"{subject}, K = 96" if deep else subject, "approximate" if deep else "published model",
            f"truncated fused dot products: {a.shape[-1] if types.packed else 32} terms, {terms} aligned with "
            f"{types.fraction} bits below the largest exponent" + (", as published for K = 64" if deep else ""),
        )  # fmt: skip
        out = np.empty_like(c)
        for at in range(0, len(out), _CHUNK):
            w = slice(at, at + _CHUNK)
            terms_of = _group_terms if types.packed else _product_terms
            values, exponents = terms_of(a[w], b[w], sa[w], sb[w], types)
            out[w] = _sum(values, exponents, c[w], types)
        return out


def sparse_scaled_product(
    machine: Machine, a: F32, b: F32, c: F32, sa: F64, sb: F64, types: Scaled, kept: NDArray[np.intp]
) -> F32:  # fmt: skip
    """Return the product of a sparse A: `a[w, m, k / 2]` and those elements of `b[w, k, n]` that `kept` names, row by row.

    The factors divide what is stored into as many equal runs as the whole: `sa[w, m, s]` and `sb[w, n, s]`.
    """
    terms = "sums of 16 stored products" if types.packed else "stored products"
    machine.fidelity.note(
        f"sparse block-scaled {types.a} tensor cores", "published model",
        f"the model of dense products over the stored elements, {terms} as its terms: no source covers sparse ones",
    )  # fmt: skip
    rows = a.shape[0] * a.shape[1]
    met = np.take_along_axis(b[:, None], kept[..., None], axis=-2).reshape(rows, -1, b.shape[-1])
    each = np.repeat(sb, a.shape[1], axis=0)
    single = (rows, 1, -1)
    flat = scaled_product(machine, a.reshape(single), met, c.reshape(single), sa.reshape(single), each, types)
    return flat.reshape(c.shape)


def _fast(a: F32, b: F32, c: F32, sa: F64, sb: F64) -> F32:
    each = a.shape[-1] // sa.shape[-1]
    left = a * np.repeat(sa, each, axis=-1)
    right = b * np.repeat(sb, each, axis=-1).swapaxes(-1, -2)
    return (np.matmul(left, right) + c).astype(np.float32)


def _exponents(x: NDArray[Any], smallest: int) -> NDArray[np.int64]:
    """Return floor(log2 |x|), not below `smallest`; zeros, infinities and NaNs get a number of no consequence."""
    return np.maximum(np.frexp(x)[1].astype(np.int64) - 1, smallest)


def _products(a: F32, b: F32) -> F64:
    """Return `[w, m, n, k]`."""
    return a.astype(np.float64)[:, :, None, :] * b.astype(np.float64).swapaxes(1, 2)[:, None]


def _scale(sa: F64, sb: F64, type_: str) -> tuple[F64, NDArray[np.int64]]:
    """Return the products of factors `[w, m, n, s]` and the sums of their exponents."""
    smallest = MIN_FACTOR[type_]
    exponents = _exponents(sa, smallest)[:, :, None] + _exponents(sb, smallest)[:, None]
    return sa[:, :, None] * sb[:, None], exponents


def _product_terms(a: F32, b: F32, sa: F64, sb: F64, types: Scaled) -> tuple[F64, NDArray[np.int64]]:
    scale, exponents = _scale(sa, sb, types.factor)
    values = _products(a, b) * scale
    ea = _exponents(a, MIN_EXPONENT[types.a])[:, :, None, :]
    eb = _exponents(b, MIN_EXPONENT[types.b]).swapaxes(1, 2)[:, None]
    return values, np.where(values == 0, types.zero, ea + eb + exponents)


def _group_terms(a: F32, b: F32, sa: F64, sb: F64, types: Scaled) -> tuple[F64, NDArray[np.int64]]:
    scale, exponents = _scale(sa, sb, types.factor)
    products = _products(a, b)
    groups = products.reshape(*products.shape[:-1], -1, _GROUP)
    each = groups.shape[-2] // scale.shape[-1]
    scale, exponents = np.repeat(scale, each, axis=-1), np.repeat(exponents, each, axis=-1)
    # a sum that cancels to zero keeps its exponent; one of zeros alone does not
    nothing = (groups == 0).all(-1) | (scale == 0)
    return groups.sum(-1) * scale, np.where(nothing, types.zero, exponents)


def _sum(values: F64, exponents: NDArray[np.int64], c: F32, types: Scaled) -> F32:
    """Align, truncate and add the terms `[w, m, n, term]` and C; round toward zero to float32."""
    largest = np.maximum(exponents.max(-1), np.where(c == 0, types.zero, _exponents(c, -126)))
    shift = types.fraction - largest
    total = np.trunc(np.ldexp(values, shift[..., None])).sum(-1)
    total += np.trunc(np.ldexp(c.astype(np.float64), shift))
    return round_sums(np.ldexp(total, -shift), "rz32")
