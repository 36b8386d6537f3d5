"""tests/data/libraries: products with quantised weights (Marlin of vLLM)."""

from __future__ import annotations

from functools import partial

import numpy as np

from programs.captured import launches
from programs.program import Collection, Judge

F16 = np.float16
_collection = Collection("libraries", "", ("sm_80", "sm_90a"))
program = partial(_collection, per_arch=True, slow=True)
PROGRAMS = _collection.programs


def _marlin_weights(q: np.ndarray) -> np.ndarray:
    """Pack whole numbers under 16 `[k, n]` in the order in which Marlin's warps take them, eight to a word."""
    k, n = q.shape
    order = np.array(
        [
            16 * row + lane // 4 + 8 * block + 256 * tile
            for lane in range(32)
            for tile in range(4)
            for block in (0, 1)
            for row in (lane % 4 * 2, lane % 4 * 2 + 1, lane % 4 * 2 + 8, lane % 4 * 2 + 9)
        ]
    ).reshape(-1, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]]
    tiles = q.reshape(k // 16, 16, n // 16, 16).transpose(0, 2, 1, 3).reshape(-1, 1024)[:, order.reshape(-1)]
    return (tiles.reshape(-1, 8).astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32)


def _marlin(rng: np.random.Generator, name: str, rows: int) -> Judge:
    n, k, group = 256, 512, 128
    a, q = rng.standard_normal((rows, k)).astype(F16), rng.integers(0, 16, (k, n))
    scales = (rng.random((k // group, n)) * 0.1 + 0.01).astype(F16)
    held = scales.reshape(-1, 8, 8).swapaxes(1, 2).reshape(scales.shape)
    c, sums, locks = np.zeros((rows, n), F16), np.zeros(1 << 16, np.float32), np.zeros(64, np.int32)
    arrays = {"a": a, "weights": _marlin_weights(q), "c": c, "sums": sums, "scales": np.ascontiguousarray(held)}
    arrays = {**arrays, "zeros": np.zeros(1, np.int32), "locks": locks}
    yield from launches("libraries", name, arrays, unlike="sums" if rows % 16 else "")  # of rows that nobody loads, too
    weights = ((q - 8).astype(float) * np.repeat(scales.astype(float), group, axis=0)).astype(F16).astype(float)
    want = a.astype(float) @ weights
    assert np.abs(c.astype(float) - want).max() < 2.0**-9 * np.abs(want).max()
    assert not locks.any()


@program("marlin_int4", source="marlin_int4")
def marlin_int4(rng: np.random.Generator, arch: str) -> Judge:
    """Marlin of vLLM: halves times weights of four bits with a scale for 128 (lop3, mma.sync), sums of CTAs behind locks"""
    yield from _marlin(rng, f"marlin_int4.{arch}", 16)


@program("marlin_int4_three", source="marlin_int4", remarks=("shared-race", "uninitialised-read"))
def marlin_int4_three(rng: np.random.Generator, arch: str) -> Judge:
    """The same with 13 rows on three CTAs, whose stripes end within columns"""
    yield from _marlin(rng, f"marlin_int4_three.{arch}", 13)
