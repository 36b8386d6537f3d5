"""Metadata of sparse products of tcgen05 in tensor memory (PTX ISA 9.7.18.10.9).

Each chunk of A (four elements; tf32: two; packed 4-bit floats: four pairs) has a code of four bits, as for mma.sp. With 8-bit
elements, and packed ones, lane r holds the 64 bits of row r in two columns, the first chunk lowest. Of 16-bit and tf32
elements row r has 32 bits in one column: lane 16·(r / 16) + r % 8 holds its first four codes, the lane eight further down the
other four, in the lower half of the word where r / 8 is even, else in the upper one.

The manual draws this in figures; the layouts are those that CuTe publishes (`tmem_e_frg`, `tmem_e_frg_ws`): for 128 rows in
each CTA, and for the 32 and 64 rows of `.ws`, whose metadata stand again in the lanes of each part of the data path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpsmith.simulator.operand_values import WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["codes_of", "columns_of", "meaningful", "metadata_columns"]

_TWO_OF_FOUR = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)
_ONE_OF_TWO = (0b0100, 0b1110)


def metadata_columns(type_: str) -> int:
    """Return the columns of tensor memory that the metadata take."""
    return 2 if WIDTH[type_] == 8 else 1


def codes_of(words: NDArray[np.uint32], type_: str) -> NDArray[np.uint64]:
    """Return the code of each chunk `[rows, chunks]` from the words `[rows, columns]` of the lanes of one part."""
    if WIDTH[type_] == 8:
        bits = words[:, 0].astype(np.uint64) | words[:, 1].astype(np.uint64) << np.uint64(32)
        count = 16
    else:
        r = np.arange(len(words))
        lane, shift = 16 * (r // 16) + r % 8, (16 * (r // 8 % 2)).astype(np.uint32)
        first, second = (words[at, 0] >> shift & np.uint32(0xFFFF) for at in (lane, lane + 8))
        bits = first.astype(np.uint64) | second.astype(np.uint64) << np.uint64(16)
        count = 8
    return bits[:, None] >> np.uint64(4) * np.arange(count, dtype=np.uint64) & np.uint64(15)


def meaningful(codes: NDArray[np.uint64], type_: str) -> bool:
    """Return whether the manual gives all codes a meaning (9.7.18.10.9.1 to 9.7.18.10.9.3)."""
    return bool(np.isin(codes, _ONE_OF_TWO if type_ == "tf32" else _TWO_OF_FOUR).all())


def columns_of(codes: NDArray[np.uint64], type_: str, *, packed: bool = False) -> NDArray[np.intp]:
    """Return the column of each stored element `[rows, k / 2]`; `packed`: two elements share a byte, and go together."""
    low, high = (codes & np.uint64(3)).astype(np.intp), (codes >> np.uint64(2)).astype(np.intp)
    chunk = np.arange(codes.shape[-1])
    if type_ == "tf32":
        return 2 * chunk + low // 2
    named = 4 * chunk[:, None] + np.stack([low, high], axis=-1)
    if packed:
        named = 2 * named[..., None] + np.arange(2)
    return named.reshape(len(codes), -1)
