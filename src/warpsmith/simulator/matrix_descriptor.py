"""Matrix descriptors of wgmma: 64 bits that say where a matrix lies in shared memory (PTX ISA 9.7.15.5.1).

    13:0   start address >> 4          45:32  stride dimension byte offset >> 4
    29:16  leading dimension byte      51:49  base offset
           offset >> 4                 63:62  swizzle: 0 none, 1 128B, 2 64B, 3 32B

The byte of every element follows from the canonical layouts: 8 x 16-byte core matrices, repeated along both dimensions.
With T elements in 16 bytes and S 16-byte columns in the swizzle width (none 1, 32B 2, 64B 4, 128B 8):

    K-major   element (mn, k) = (mn % 8)·16·S + (mn / 8)·SBO + (k / T)·(16, or LBO without swizzle) + k % T
    MN-major  element (mn, k) = (k % 8)·16·S  + mn % T + (mn / T % S)·16
                                + (mn / (T·S))·(LBO; SBO without swizzle) + (k / 8)·(SBO; LBO without swizzle)

and the swizzle then exchanges 16-byte pieces by their absolute address.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.swizzle import MODES, swizzle

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MatrixDescriptor", "decode", "encode", "offsets"]

_SWIZZLES = ("none", "128B", "64B", "32B")
_COLUMNS = {"none": 1, "32B": 2, "64B": 4, "128B": 8, "128B_atom_32B": 8}


@final
@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """The fields of a descriptor, in bytes."""

    start: int
    leading: int
    """Leading dimension byte offset (LBO)."""
    stride: int
    """Stride dimension byte offset (SBO)."""
    swizzle: str = "none"
    base_offset: int = 0
    absolute: bool = False
    """`leading` is the address at which rows go on behind their 128 bytes (tcgen05 of sm_103, K = 96)."""


@lru_cache(maxsize=4096)
def decode(bits: int) -> MatrixDescriptor:
    """Return the fields of a 64-bit wgmma descriptor."""
    return MatrixDescriptor(
        start=(bits & 0x3FFF) << 4,
        leading=(bits >> 16 & 0x3FFF) << 4,
        stride=(bits >> 32 & 0x3FFF) << 4,
        swizzle=_SWIZZLES[bits >> 62 & 3],
        base_offset=bits >> 49 & 7,
    )


def encode(d: MatrixDescriptor) -> int:
    """Return the 64 bits of a descriptor."""
    return (
        (d.start >> 4 & 0x3FFF)
        | (d.leading >> 4 & 0x3FFF) << 16
        | (d.stride >> 4 & 0x3FFF) << 32
        | d.base_offset << 49
        | _SWIZZLES.index(d.swizzle) << 62
    )


@lru_cache(maxsize=1024)
def offsets(d: MatrixDescriptor, mn: int, k: int, width: int, *, mn_major: bool) -> NDArray[np.int64]:
    """Return the `shared::cta` byte address of every element, `[mn, k]`; `width` is bytes per element.

    Raise `CapabilityError` for a base offset other than 0.
    """
    if d.base_offset:
        raise CapabilityError(
            f"simulator: a matrix descriptor with base offset {d.base_offset} is not modelled; "
            f"align the {d.swizzle} pattern to {MODES[d.swizzle].period} bytes"
        )
    per_piece = 16 // width
    columns = _COLUMNS[d.swizzle]
    i, j = np.arange(mn, dtype=np.int64)[:, None], np.arange(k, dtype=np.int64)
    plain = d.swizzle == "none"
    if mn_major:
        piece, group = i // per_piece, columns
        tall = 4 if d.swizzle == "128B_atom_32B" else 8  # rows along K of a swizzle atom (9.7.18.10.6)
        at = j % tall * (16 * columns) + i % per_piece * width + piece % group * 16
        at = at + piece // group * (d.stride if plain else d.leading) + j // tall * (d.leading if plain else d.stride)
    else:
        at = i % 8 * (16 * columns) + i // 8 * d.stride + j // per_piece * (d.leading if plain else 16) + j % per_piece * width
        if d.absolute:
            beyond = d.start % 128 + j * width >= 128
            at = np.where(beyond, at + (d.leading - 128 - (d.start - d.start % 128)), at)
    return swizzle(d.swizzle, at + d.start)
