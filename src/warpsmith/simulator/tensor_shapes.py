"""Which lane and column each register of `tcgen05.ld` and `st` means (PTX ISA 9.7.18.2.3.1, figures 183 to 187).

shape     register i of lane t                                            columns a repetition
32x32b    lane t                           column i                        1
16x64b    lane t / 4 + 8·(t % 2)           column 2·i + t / 2 % 2          2
16x128b   lane t / 4 + 8·(i % 2)           column 4·(i / 2) + t % 4        4
16x256b   lane t / 4 + 8·(i / 2 % 2)       column 8·(i / 4) + 2·(t % 4) + i % 2    8
16x32bx2  lane t % 16                      column i, from lane 16 on behind the split offset
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SHAPES", "columns_of", "fragment"]

SHAPES = {"32x32b": (32, 1), "16x64b": (16, 1), "16x128b": (16, 2), "16x256b": (16, 4), "16x32bx2": (16, 1)}
"""Shape -> lanes of tensor memory, and registers of a repetition."""


@cache
def fragment(shape: str, repetitions: int, split: int, *, halves: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (lane, column) `[register, 32]` of every register and thread, relative to the address.

    With `halves` (`.pack::16b`, `.unpack::16b`) a register stands for the low halves of that column and the next one.
    """
    i = np.arange(repetitions * SHAPES[shape][1], dtype=np.int64)[:, None]
    t = np.arange(32, dtype=np.int64)
    if shape == "32x32b":
        lane, column = t + 0 * i, i + 0 * t
    elif shape == "16x64b":
        lane, column = t // 4 + 8 * (t % 2) + 0 * i, 2 * i + t // 2 % 2
    elif shape == "16x128b":
        lane, column = t // 4 + 8 * (i % 2), 4 * (i // 2) + t % 4
    elif shape == "16x256b":
        lane, column = t // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (t % 4) + i % 2
    else:
        lane, column = t % 16 + 0 * i, i + 0 * t
    return lane, column * (2 if halves else 1) + (split * (t // 16) if shape == "16x32bx2" else 0)


@cache
def columns_of(shape: str, repetitions: int, split: int, *, halves: bool) -> tuple[tuple[int, int], ...]:
    """Return the columns that a load or store touches, as ranges (first, stop) relative to the address."""
    _, columns = fragment(shape, repetitions, 0, halves=halves)
    width = int(columns.max()) + (2 if halves else 1)
    return tuple((at, at + width) for at in ([0, split] if shape == "16x32bx2" else [0]))
