"""Fragment maps against formulas of the manual written out by hand, and as bijections."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.simulator.fragments import (
    accumulator,
    operand_a,
    operand_b,
    volta_accumulator,
    volta_operand,
    wgmma_a,
    wgmma_accumulator,
)

A_SHAPES = [
    (16, 8, 16), (16, 16, 16), (16, 4, 32), (16, 8, 32), (16, 16, 8), (16, 32, 8), (8, 16, 8), (8, 32, 4), (16, 32, 4),
    (16, 64, 4), (8, 128, 1), (16, 128, 1), (16, 256, 1), (8, 4, 64), (16, 4, 64), (16, 8, 64), (16, 16, 64),
]  # fmt: skip


def cells(where: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    return sorted(zip(where[0].ravel().tolist(), where[1].ravel().tolist(), strict=True))


def every(m: int, n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(m) for j in range(n)]


@pytest.mark.parametrize(("m", "k", "bits"), A_SHAPES)
def test_a_and_b_hold_every_element_once(m: int, k: int, bits: int) -> None:
    assert cells(operand_a(m, k, bits)) == every(m, k)
    assert cells(operand_b(k, 8, bits)) == every(k, 8)


@pytest.mark.parametrize(("m", "n", "bits"), [(16, 8, 32), (16, 8, 16), (8, 8, 32), (16, 8, 64), (8, 8, 64)])
def test_accumulators_hold_every_element_once(m: int, n: int, bits: int) -> None:
    assert cells(accumulator(m, n, bits)) == every(m, n)


def test_a_of_m16n8k16() -> None:
    """Row: groupID for i in 0,1,4,5, else + 8; column: member·2 + (i & 1), + 8 for i >= 4 (f16)."""
    row, column = operand_a(16, 16, 16)
    for lane in range(32):
        for i in range(8):
            at = (i // 2, lane, i % 2)
            assert row[at] == lane // 4 + (8 if i in (2, 3, 6, 7) else 0)
            assert column[at] == lane % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)


def test_a_of_m16n8k32_bytes() -> None:
    """Row: groupID for i in 0-3 and 8-11; column: member·4 + (i & 3), + 16 for i >= 8."""
    row, column = operand_a(16, 32, 8)
    for lane in range(32):
        for i in range(16):
            at = (i // 4, lane, i % 4)
            assert row[at] == lane // 4 + (0 if i < 4 or 8 <= i < 12 else 8)
            assert column[at] == lane % 4 * 4 + (i & 3) + (16 if i >= 8 else 0)


def test_b_of_m16n8k8_tf32() -> None:
    row, column = operand_b(8, 8, 32)
    for lane in range(32):
        for i in range(2):
            assert (row[i, lane, 0], column[i, lane, 0]) == (lane % 4 + 4 * i, lane // 4)


def test_wgmma_accumulator() -> None:
    """d[i] of thread t: row 16·warp + groupID + 8·((i // 2) % 2), column 8·(i // 4) + 2·member + i % 2."""
    row, column = wgmma_accumulator(64, 32)
    for t in range(128):
        for i in range(32):
            lane = t % 32
            assert row[i, t, 0] == 16 * (t // 32) + lane // 4 + 8 * (i // 2 % 2)
            assert column[i, t, 0] == 8 * (i // 4) + 2 * (lane % 4) + i % 2
    assert cells(wgmma_accumulator(24, 16)) == every(64, 24)
    assert cells(wgmma_a(16, 16)) == every(64, 16)


@pytest.mark.parametrize("layout", ["row", "col"])
def test_volta_quads_hold_their_matrices(layout: str) -> None:
    for quads, where, shape in (
        (*volta_operand(layout, b=False), (8, 4)), (*volta_operand(layout, b=True), (4, 8)),
        (*volta_accumulator(16), (8, 8)), (*volta_accumulator(32), (8, 8)),
    ):  # fmt: skip
        for q in range(4):
            mine = quads == q
            assert cells((where[0][mine], where[1][mine])) == every(*shape)


def test_volta_f32_accumulator() -> None:
    """Row: (lane & 1) + (i & 2), + 4 from lane 16 on; column: (i & 4) + (lane & 2) + (i & 1)."""
    _, (row, column) = volta_accumulator(32)
    for lane in range(32):
        for i in range(8):
            assert row[i, lane, 0] == (lane & 1) + (i & 2) + (4 if lane >= 16 else 0)
            assert column[i, lane, 0] == (i & 4) + (lane & 2) + (i & 1)
