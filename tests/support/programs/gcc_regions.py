"""tests/data/openacc/regions.c: regions of OpenACC, by GCC's back end for PTX.

A region takes the address of a block of addresses: of its arrays, and of its numbers.
"""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("gcc", "regions", ("sm_30", "sm_53", "sm_80"))


def _int(value: int) -> np.ndarray:
    return np.array([value], np.int32)


@program("saxpy$_omp_fn$0", machine=True)
def saxpy(rng: np.random.Generator) -> Judge:
    """A parallel loop over gangs and lanes"""
    n = 300
    x, y = (rng.integers(-50, 50, n).astype(np.float32) for _ in range(2))
    want = y + 2 * x
    yield Launch([[x, y, np.array([2], np.float32), _int(n)]], grid=3)
    assert np.array_equal(y, want)


def _chosen(op: int, a: int, b: int) -> int:
    quotient = 0 if b == 0 else abs(a) // b * (1 if a >= 0 else -1)
    cases = [a + b, a - b, a * b, a & b, a | b, a ^ b, a << (b & 7), a >> (b & 7), quotient, 0 if b == 0 else a - quotient * b]
    return cases[op] if 0 <= op < 10 else -op


@program("functions$_omp_fn$0", machine=True)
def functions(rng: np.random.Generator) -> Judge:
    """Structures by value, a switch, recursion, bytes on the stack, counts of bits, __int128"""
    n = 50
    x = rng.integers(-1000, 1000, n, dtype=np.int32)
    out = np.zeros((n, 6), np.int64)
    yield Launch([[x, out, _int(n)]], grid=2)
    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21]
    for i, v in enumerate(x.tolist()):
        tenth, thirteenth = (int(np.fmod(v, m)) for m in (10, 13))
        text = bytearray(8)
        for k in range(8):
            text[(k + i) & 7] = (v + k * k) & 255
        ones = (v & 0xFFFFFFFF).bit_count() + 100 * (32 - (i + 1).bit_length()) + 10000 * ((i + 1 & -(i + 1)).bit_length() - 1)
        assert out[i].tolist() == [
            (v + tenth) * 100 + i - tenth + tenth,
            _chosen(thirteenth, v, i),
            fib[i % 9],
            int.from_bytes(text, "little", signed=True),
            ones,
            v * 0x123456789ABCDEF0 >> 40,
        ]


@program("sums$_omp_fn$0", machine=True)
def sums(rng: np.random.Generator) -> Judge:
    """Reductions over workers and lanes through locks in shared memory"""
    n, m = 5, 150
    x = rng.integers(-50, 50, (n, m)).astype(np.float64)
    out = np.zeros(n)
    yield Launch([[x, out, _int(m), _int(n)]], grid=3, block=(32, 4))
    assert np.array_equal(out, x.sum(1) * 1000 + x.max(1))


@program("product$_omp_fn$0", machine=True)
def product(rng: np.random.Generator) -> Judge:
    """A product: rows by gangs, columns by workers, sums by lanes"""
    n = 12
    a, b = (rng.integers(-5, 5, (n, n)).astype(np.float32) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    yield Launch([[a, b, c, _int(n)]], grid=4, block=(32, 3))
    assert np.array_equal(c, a @ b)


@program("total$_omp_fn$0", machine=True)
def total(rng: np.random.Generator) -> Judge:
    """Reductions over gangs, workers and lanes"""
    n = 500
    x = rng.integers(-(1 << 40), 1 << 40, n)
    sum_, odd, most = np.zeros(1, np.int64), _int(0), np.ones(1, np.int64)
    yield Launch([[x, sum_, odd, most, _int(n)]], grid=3, block=(32, 2))
    assert (sum_[0], most[0]) == (x.sum(), x.max())
    assert odd[0] == np.bitwise_xor.reduce(x.astype(np.int32))


@program("pairs$_omp_fn$0", machine=True)
def pairs(rng: np.random.Generator) -> Judge:
    """Vectors of registers, set by element (mov.v2)"""
    n = 40
    x = rng.integers(-(1 << 40), 1 << 40, (n, 2))
    out, small = np.zeros((n, 2), np.int64), np.zeros((n, 2), np.int32)
    yield Launch([[x, out, small, _int(n)]], grid=2)
    assert np.array_equal(out, x + [[0, i] for i in range(n)])
    assert np.array_equal(small, np.stack([x[:, 0].astype(np.int32), np.arange(n)], 1))


PROGRAMS = program.programs
