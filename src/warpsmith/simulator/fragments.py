"""Which element of a matrix each thread holds in which register (PTX ISA 9.7.14.5 for mma, 9.7.15.5 for wgmma).

A fragment map is `(row, column)`: two int arrays `[register, lane, part]`, where `part` counts the elements packed in one
register from its low bits up. A warp's lane is 4·group + member: `group` = lane / 4, `member` = lane % 4.

All of mma.sync follows one scheme. A register holds consecutive elements along K (A, B) or along N (C, D). Registers first
cover a tile of 8 rows by 4 members, then the second half of the rows, then the next tile along K.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Map = tuple[NDArray[np.intp], NDArray[np.intp]]

__all__ = ["accumulator", "operand_a", "operand_b", "volta_accumulator", "volta_operand", "wgmma_a", "wgmma_accumulator"]


def _grid(registers: int, parts: int) -> tuple[NDArray[np.intp], ...]:
    """Return register, group, member and part numbers, broadcast to `[register, lane, part]`."""
    r, lane, p = np.meshgrid(np.arange(registers), np.arange(32), np.arange(parts), indexing="ij")
    return r, lane // 4, lane % 4, p


@cache
def operand_a(m: int, k: int, bits: int) -> Map:
    """Return the map of A (m x k, row) of mma.sync: `(row, k)`. m is 8 or 16; `bits` per element (f64: 64).

    Registers alternate between rows +0 and +8 (m = 16), then advance along k.
    """
    parts = max(1, 32 // bits)
    r, group, member, p = _grid(m * k // (32 * parts), parts)
    halves = m // 8
    return group + 8 * (r % halves), member * parts + p + 4 * parts * (r // halves)


@cache
def operand_b(k: int, n: int, bits: int) -> Map:
    """Return the map of B (k x n, col; n = 8) of mma.sync: `(k, column)`."""
    parts = max(1, 32 // bits)
    r, group, member, p = _grid(k * n // (32 * parts), parts)
    return member * parts + p + 4 * parts * r, group


@cache
def accumulator(m: int, n: int, bits: int) -> Map:
    """Return the map of C and D (m x n, n a multiple of 8): `(row, column)`; `bits` 16 (two a register), 32 or 64.

    Two neighbouring columns go to one thread; then rows +8; then the next eight columns.
    """
    parts = 2 if bits == 16 else 1
    r, group, member, p = _grid(m * n // (32 * parts), parts)
    flat = r * parts + p
    halves = m // 8
    return group + 8 * (flat // 2 % halves), member * 2 + flat % 2 + 8 * (flat // (2 * halves))


def _volta_groups(registers: int, parts: int) -> tuple[NDArray[np.intp], ...]:
    r, lane, p = np.meshgrid(np.arange(registers), np.arange(32), np.arange(parts), indexing="ij")
    return r * parts + p, lane


@cache
def volta_operand(layout: str, *, b: bool) -> tuple[NDArray[np.intp], Map]:
    """Return (quad-pair, (row, k)) of A, or (quad-pair, (k, column)) of B, of m8n8k4 f16; `layout` is row or col.

    Four quad-pairs of a warp (lanes 4q…4q+3 and 4q+16…4q+19) compute four independent products.
    """
    flat, lane = _volta_groups(2, 2)
    inner, high = lane % 4, lane // 16
    along_k = (layout == "row") != b
    if along_k:  # a thread holds one row of A (column of B)
        mn, k = inner + 4 * high, flat
    else:
        mn, k = flat + 4 * high, inner
    return lane // 4 % 4, ((k, mn) if b else (mn, k))


@cache
def volta_accumulator(bits: int) -> tuple[NDArray[np.intp], Map]:
    """Return (quad-pair, (row, column)) of C and D of m8n8k4 f16."""
    if bits == 16:
        flat, lane = _volta_groups(4, 2)
        return lane // 4 % 4, (lane % 4 + 4 * (lane // 16), flat)
    flat, lane = _volta_groups(8, 1)
    row = (lane & 1) + (flat & 2) + 4 * (lane // 16)
    column = (flat & 4) + (lane & 2) + (flat & 1)
    return lane // 4 % 4, (row, column)


@cache
def wgmma_accumulator(n: int, bits: int) -> Map:
    """Return the map of a warpgroup's D (64 x n): `[register, thread 0…127, part]`."""
    row, column = accumulator(16, n, bits)
    return _four_warps(row, column)


@cache
def wgmma_a(k: int, bits: int) -> Map:
    """Return the map of a warpgroup's A in registers (64 x k)."""
    return _four_warps(*operand_a(16, k, bits))


def _four_warps(row: NDArray[np.intp], column: NDArray[np.intp]) -> Map:
    rows = [row + 16 * w for w in range(4)]
    return np.concatenate(rows, axis=1), np.concatenate([column] * 4, axis=1)
