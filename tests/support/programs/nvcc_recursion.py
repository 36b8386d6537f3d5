"""tests/data/cuda/recursion.cu: recursive functions that have local variables."""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("nvcc", "recursion", ("sm_80", "sm_90a.lines", "sm_120a", "sm_90.debug"))


def descend(data: list[int], low: int, high: int, outer: list[int], v: list[int], leaves: list[int]) -> int:
    """What the function of that name does, with a list for each array and pointer."""
    v = v.copy()
    v[low & 3] += 1
    if high - low <= 1:
        outer[low & 1] += data[low] * 3 + v[low & 3]
        leaves[0] += 1
        return data[low]
    middle = (low + high) // 2
    inner = [0, 0]
    a = descend(data, low, middle, inner, v, leaves)
    b = descend(data, middle, high, inner, v, leaves)
    outer[high & 1] += inner[0] - inner[1] + (low, high)[(low ^ high) & 1]
    return a * 2 + b


@program()
def tree(rng: np.random.Generator) -> Judge:
    """A walk down a tree: arrays, structures by value, and sums in the local variables of outer calls"""
    data, out = rng.integers(-50, 50, 16).astype(np.int32), np.zeros((64, 4), np.int32)
    yield Launch([data, out], grid=2)
    for t in range(64):
        top, leaves = [0, 0], [0]
        root = descend(data.tolist(), 0, 1 + t % 13, top, [1, 2, 3, 4, 5], leaves)
        assert out[t].tolist() == [root, *top, *leaves]


@program()
def quicksort(rng: np.random.Generator) -> Judge:
    """Quicksort with a local array for each call"""
    data = rng.integers(0, 30, (40, 20)).astype(np.int32)
    want = np.sort(data, axis=1)
    yield Launch([data, np.int32(20)], block=40)
    assert np.array_equal(data, want)


def turn(n: int, trace: list[int], at: int, sign: int) -> int:
    """`even` (1) or `odd` (-1) of `trace[at:]`."""
    local = [n, n * 2, 1] if sign > 0 else [n, 7, n * 5, 2, 9]
    trace[at + n % 3] += sign * n
    if n == 0:
        return int(sign > 0)
    down = turn(n - 1, local, 0 if sign > 0 else 1, -sign)
    return down + local[n % 3 + (0 if sign > 0 else 1)]


@program()
def parity(rng: np.random.Generator) -> Judge:
    """Two functions that call each other with pointers into their frames, called directly and by a table"""
    for by_table in (0, 1):
        out = np.zeros((32, 4), np.int32)
        yield Launch([out, np.int32(by_table)])
        for t in range(32):
            trace = [0, 0, 0]
            first = turn(t % 7, trace, 0, -1 if by_table and t & 1 else 1)
            assert out[t].tolist() == [first, *trace]


PROGRAMS = program.programs
