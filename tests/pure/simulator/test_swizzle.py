"""Swizzles against the pictures of the manual: rows of 16-byte pieces by number."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.simulator.swizzle import MODES, swizzle


def picture(mode: str, rows: int) -> list[list[int]]:
    """Which piece of a 128-byte line lies at each place."""
    at = np.arange(rows * 8) * 16
    lines = np.zeros(rows * 8, int)
    lines[swizzle(mode, at) // 16] = np.arange(rows * 8) % 8
    return lines.reshape(rows, 8).tolist()


def test_128_byte_swizzle() -> None:
    assert picture("128B", 8) == [[c ^ r for c in range(8)] for r in range(8)]


def test_64_byte_swizzle_repeats_after_512_bytes() -> None:
    first = picture("64B", 4)
    assert first == [[c ^ r if c < 4 else 4 + ((c - 4) ^ r) for c in range(8)] for r in range(4)]
    assert picture("64B", 8)[4:] == first


def test_32_byte_swizzle_repeats_after_256_bytes() -> None:
    assert picture("32B", 4) == [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]] * 2


def test_32_byte_atoms_move_in_pairs() -> None:
    assert picture("128B_atom_32B", 4) == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [6, 7, 4, 5, 2, 3, 0, 1],
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_swizzle_undoes_itself_and_stays_in_its_line(mode: str) -> None:
    at = np.arange(4096)
    assert (swizzle(mode, swizzle(mode, at)) == at).all()
    assert (swizzle(mode, at) >> 7 == at >> 7).all()
    assert (swizzle(mode, at) & 15 == at & 15).all()


@pytest.mark.parametrize("mode", MODES)
def test_the_period_is_the_smallest(mode: str) -> None:
    at = np.arange(0, 2048, 16)
    moved = swizzle(mode, at) - at
    period = MODES[mode].period
    assert (swizzle(mode, at + period) - at - period == moved).all()
    if mode != "none":
        assert (swizzle(mode, at + period // 2) - at - period // 2 != moved).any()
