"""Sparse A operands: which columns the stored half stands for, from the metadata (PTX ISA 9.7.14.6.1 and 9.7.15.6.1).

16- and 8-bit elements: two of every four, each named by an index of two bits. tf32: one of every two, named by a code of four
bits (4: the first, 14: the second). 4-bit elements: two of every four pairs of neighbours, each named by an index of two bits.

The metadata of a row are `bits` bits, lowest first. Lanes of a quad hold those of rows g and g + 8, g = lane / 4. With 16 bits
a row, the lane that the selector names holds both (row g low, row g + 8 high). With 32 bits the selector names two lanes:
for 16-bit and tf32 elements each holds one half of both rows; for narrower elements, one row. With 64 bits all four lanes
hold a half of a row: (g, low), (g + 8, low), (g, high), (g + 8, high). A warpgroup's warps hold 16 rows each by the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.multiply import multiply
from warpsmith.simulator.operand_values import WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.machine import Machine

__all__ = ["Sparsity", "sparse_product"]


@final
@dataclass(frozen=True, slots=True)
class Sparsity:
    """How A of `type_` and `depth` columns is stored; `ordered`: the two indices of a chunk must ascend."""

    type_: str
    depth: int
    ordered: bool = False
    packed: bool = False
    """Whether elements of type e2m1 take 4 bits each, not a byte."""

    @property
    def width(self) -> int:
        """Bits of a stored element."""
        return 4 if self.packed else WIDTH[self.type_]

    @property
    def bits(self) -> int:
        """Bits of metadata for one row."""
        return 2 * self.depth if self.type_ == "tf32" else self.depth // 2 if self.width == 4 else self.depth

    def columns(self, machine: Machine, e: NDArray[np.uint32], selector: int) -> NDArray[np.intp]:
        """Return the column of each stored element `[warp, 16, depth / 2]` from the metadata registers `e[warp, 32]`.

        Metadata that the manual calls undefined name columns all the same; the fidelity report says that they did.
        Raise `CapabilityError` for a selector without meaning.
        """
        metadata = self._rows(e, selector)
        codes = metadata[..., None] >> (np.uint64(4) * np.arange(self.bits // 4, dtype=np.uint64)) & np.uint64(15)
        if not self._meaningful()[codes].all():
            machine.fidelity.note(
                f"metadata of sparse {self.type_} operands", "not modelled",
                "metadata that the manual calls undefined were used; each stored element met the element of B they name",
            )  # fmt: skip
        low, high = (codes & np.uint64(3)).astype(np.intp), (codes >> np.uint64(2)).astype(np.intp)
        chunk = np.arange(codes.shape[-1])
        if self.type_ == "tf32":
            return 2 * chunk + low // 2
        pairs = np.stack([low, high], axis=-1)
        if self.width == 4:
            named = 8 * chunk[:, None, None] + 2 * pairs[..., None] + np.arange(2)
        else:
            named = 4 * chunk[:, None] + pairs
        return named.reshape(*metadata.shape, self.depth // 2)

    def _rows(self, e: NDArray[np.uint32], selector: int) -> NDArray[np.uint64]:
        """Return the metadata of each row `[warp, 16]`."""
        limit = 64 // self.bits
        if not 0 <= selector < limit:
            raise CapabilityError(
                f"simulator: sparsity selector {selector} has no meaning for {self.type_} and k{self.depth}; "
                f"use 0 to {limit - 1}"
            )
        quads = e.reshape(-1, 8, 4).astype(np.uint64)
        low, half, word = np.uint64(0xFFFF), np.uint64(16), np.uint64(32)
        if self.bits == 16:
            held = quads[:, :, selector]
            rows = [held & low, held >> half]
        elif self.bits == 32:
            first, second = quads[:, :, 2 * selector], quads[:, :, 2 * selector + 1]
            rows = [first, second]
            if self.width >= 16:
                rows = [(first & low) | (second & low) << half, first >> half | (second >> half) << half]
        else:
            rows = [quads[:, :, 0] | quads[:, :, 2] << word, quads[:, :, 1] | quads[:, :, 3] << word]
        return np.concatenate(rows, axis=1)

    def _meaningful(self) -> NDArray[np.bool_]:
        """Return which of the sixteen codes the manual defines."""
        if self.type_ == "tf32":
            return np.isin(np.arange(16), (4, 14))
        low, high = np.arange(16) & 3, np.arange(16) >> 2
        return low < high if self.ordered else low != high


def sparse_product(
    machine: Machine,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any] | None,
    types: tuple[str, str, str, str],
    columns: NDArray[np.intp],
    *,
    saturate: bool = False,
    wgmma: bool = False,
) -> NDArray[Any]:
    """Return A·B + C for A stored by half, `a` and `columns` `[…, m, k / 2]`, and values `b[…, k, n]` and `c[…, m, n]`.

    Each row meets the elements of B that it names: those it leaves out take no part, infinities and NaNs among them.
    """
    spread = _spread(a, b, columns)
    if spread is not None:
        return multiply(machine, spread, b, c, types, saturate=saturate, wgmma=wgmma, sparse="spread")
    met = np.take_along_axis(b[..., None, :, :], columns[..., None], axis=-2)
    third = None if c is None else c[..., None, :]
    return multiply(machine, a[..., None, :], met, third, types, saturate=saturate, wgmma=wgmma, sparse="met")[..., 0, :]


def _spread(a: NDArray[Any], b: NDArray[Any], columns: NDArray[np.intp]) -> NDArray[Any] | None:
    """Return A with its zeros, or None where a product with them would differ from none at all.

    That is so if B holds infinities or NaNs, or two stored elements of a row claim one column.
    """
    if not np.isfinite(b).all():
        return None
    full, taken = np.zeros((*a.shape[:-1], b.shape[-2]), a.dtype), np.zeros((*a.shape[:-1], b.shape[-2]), np.bool_)
    np.put_along_axis(full, columns, a, axis=-1)
    np.put_along_axis(taken, columns, np.bool_(True), axis=-1)
    return full if np.count_nonzero(taken) == a.size else None
