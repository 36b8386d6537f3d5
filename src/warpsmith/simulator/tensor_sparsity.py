"""Metadata of sparse products of tcgen05 in tensor memory (PTX ISA 9.7.18.10.9), for 128 rows in each CTA.

Each chunk of A (four elements; tf32: two) has a code of four bits, as for mma.sp. With 8-bit elements lane r holds the 64
bits of row r in two columns, the first chunk lowest. Of 16-bit and tf32 elements row r has 32 bits in one column: lane
16·(r / 16) + r % 8 holds its first four codes, the lane eight further down the other four, in the lower half of the word
where r / 8 is even, else in the upper one. The manual draws this in figures; the layouts are those that CuTe publishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpsmith.simulator.operand_values import WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["metadata_columns", "stored_columns"]


def metadata_columns(type_: str) -> int:
    """Return the columns of tensor memory that the metadata take."""
    return 2 if WIDTH[type_] == 8 else 1


def stored_columns(words: NDArray[np.uint32], type_: str) -> NDArray[np.intp]:
    """Return the column of each stored element `[128, k / 2]` from the words `[128, columns]` of the lanes."""
    four = np.uint64(4)
    if WIDTH[type_] == 8:
        bits = words[:, 0].astype(np.uint64) | words[:, 1].astype(np.uint64) << np.uint64(32)
        count = 16
    else:
        r = np.arange(128)
        lane, shift = 16 * (r // 16) + r % 8, (16 * (r // 8 % 2)).astype(np.uint32)
        first, second = (words[at, 0] >> shift & np.uint32(0xFFFF) for at in (lane, lane + 8))
        bits = first.astype(np.uint64) | second.astype(np.uint64) << np.uint64(16)
        count = 8
    codes = bits[:, None] >> four * np.arange(count, dtype=np.uint64) & np.uint64(15)
    low, high = (codes & np.uint64(3)).astype(np.intp), (codes >> np.uint64(2)).astype(np.intp)
    chunk = np.arange(count)
    if type_ == "tf32":
        return 2 * chunk + low // 2
    return (4 * chunk[:, None] + np.stack([low, high], axis=-1)).reshape(128, -1)
