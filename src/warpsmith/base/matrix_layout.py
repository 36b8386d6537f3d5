"""Canonical shared-memory layouts of wgmma operands (PTX ISA 9.7.15.5.1).

A tile is rows of `width` bytes, row after row. `width` decides the swizzle: 128, 64, 32 bytes, or none at 16. Wider tiles
are stripes of 128 bytes, one after the other. Offsets are in bytes; a descriptor holds them divided by 16.

    K-major, (M or N) × K    stride: from 8 rows to the next 8; leading: unused with a swizzle
    MN-major, K × (M or N)   stride: from 8 k to the next 8; leading: from one stripe to the next
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from warpsmith.base.ptx_types import PtxType

__all__ = ["GmmaLayout", "LayoutType", "Major", "layout_for_a", "layout_for_b", "pick_gmma_layout"]


class LayoutType(Enum):
    """The layout field of a wgmma descriptor, bits 62-63."""

    INTERLEAVE = 0
    B128 = 1
    B64 = 2
    B32 = 3


class Major(Enum):
    """Which direction of an operand is contiguous: K, or M (of A) and N (of B)."""

    K = 0
    MN = 1


@final
@dataclass(frozen=True, slots=True)
class GmmaLayout:
    """What a descriptor needs to know about a tile; the swizzle must be the one the tile is written with."""

    layout_type: LayoutType
    leading_byte_offset: int
    stride_byte_offset: int
    tma_swizzle: str
    """`NONE`, `32B`, `64B` or `128B`."""
    smem_swizzle: str | None
    """The same for `smem.alloc(swizzle=)`: None instead of `NONE`."""

    @property
    def swizzle_code(self) -> int:
        """Value of the descriptor's layout field."""
        return self.layout_type.value


_BY_WIDTH = {128: LayoutType.B128, 64: LayoutType.B64, 32: LayoutType.B32, 16: LayoutType.INTERLEAVE}


def pick_gmma_layout(*, elem_bytes: int, m_or_n: int, k: int, major: Major) -> GmmaLayout:
    """Return the layout of a tile of `m_or_n` × `k` elements; `ValueError` when no layout has its row width."""
    rows, columns = (m_or_n, k) if major is Major.K else (k, m_or_n)
    bytes_ = columns * elem_bytes
    width = 128 if bytes_ % 128 == 0 else bytes_
    kind = _BY_WIDTH.get(width)
    if kind is None or bytes_ <= 0:
        raise ValueError(
            f"a wgmma tile has rows of 16, 32, 64 or a multiple of 128 bytes, and {columns} elements of "
            f"{elem_bytes} bytes are {bytes_}"
        )
    if rows % 8:
        raise ValueError(f"a wgmma tile has a multiple of 8 rows, and this has {rows}")
    swizzle = "NONE" if kind is LayoutType.INTERLEAVE else f"{width}B"
    leading, stride = _offsets(kind, width, rows, major)
    return GmmaLayout(kind, leading, stride, swizzle, None if swizzle == "NONE" else swizzle)


def _offsets(kind: LayoutType, width: int, rows: int, major: Major) -> tuple[int, int]:
    """(leading, stride) in bytes."""
    if kind is LayoutType.INTERLEAVE:
        return (rows * 16, 128) if major is Major.K else (128, rows * 16)
    return (16, 8 * width) if major is Major.K else (rows * width, 8 * width)


def layout_for_a(*, dtype: PtxType, m: int, k: int) -> GmmaLayout:
    """Return the layout of operand A, (M, K) row-major: K-major."""
    return pick_gmma_layout(elem_bytes=dtype.bits // 8, m_or_n=m, k=k, major=Major.K)


def layout_for_b(*, dtype: PtxType, k: int, n: int) -> GmmaLayout:
    """Return the layout of operand B, (K, N) row-major: MN-major."""
    return pick_gmma_layout(elem_bytes=dtype.bits // 8, m_or_n=n, k=k, major=Major.MN)
