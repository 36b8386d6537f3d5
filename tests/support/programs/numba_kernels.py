"""tests/data/numba/kernels.py: Numba flattens an array to seven or more parameters."""

from __future__ import annotations

import math

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("numba", "", ("sm_80", "sm_90", "sm_120"))
PROGRAMS = program.programs


def flat(*arrays: np.ndarray) -> list[object]:
    """Arrays as Numba passes them: two owners, the number of elements and their size, data, shape, strides."""
    out: list[object] = []
    for a in arrays:
        out += [0, 0, a.size, a.itemsize, a, *a.shape, *a.strides]
    return out


@program(source="block_sum")
def block_sum(rng: np.random.Generator) -> Judge:
    """Sums of blocks through shared memory, added atomically"""
    x, out = rng.integers(-99, 99, 300).astype(np.float32), np.zeros(1, np.float32)
    yield Launch(flat(x, out), "block_sum", grid=3, block=128)
    assert out[0] == x.sum()


@program(source="product")
def product(rng: np.random.Generator) -> Judge:
    """A tiled product of two-dimensional arrays"""
    a, b = rng.standard_normal((16, 24)).astype(np.float32), rng.standard_normal((24, 16)).astype(np.float32)
    c = np.zeros((16, 16), np.float32)
    yield Launch(flat(a, b, c), "product", grid=(2, 2), block=(8, 8))
    assert np.allclose(c, a.astype(float) @ b.astype(float), atol=1e-5)


@program(source="functions")
def functions(rng: np.random.Generator) -> Judge:
    """Functions of doubles through libdevice"""
    x, out = rng.standard_normal(50), np.zeros((3, 50))
    yield Launch(flat(x, out), "functions", grid=2, block=32)
    size = np.abs(x)
    each = [[math.gamma(s + 1) + math.erf(v) for s, v in zip(size, x, strict=True)], np.arctan2(x, 2)]
    want = [np.sin(x) * np.exp(-x) + np.log1p(size), each[0] + each[1]]
    want.append(np.fmod(x * 100, 0.7) + np.sqrt(size) + size**1.5 + np.floor(x * 3))
    assert np.allclose(out, want, rtol=1e-13, atol=1e-13)


@program(source="warps")
def warps(rng: np.random.Generator) -> Judge:
    """Shuffles, votes, matches, counts of bits"""
    x, out = rng.integers(-8, 8, 32).astype(np.int32), np.zeros(128, np.int32)
    yield Launch(flat(x, out), "warps")
    lanes = np.arange(32)
    bits = 1 << lanes.astype(np.int64)
    assert np.all(out[:32] == x.sum())
    assert np.all(out[32:64].view(np.uint32) == bits[x > 3].sum())
    for t in range(32):
        assert out[64:96].view(np.uint32)[t] == bits[x % 4 == x[t] % 4].sum()
        v = int(x[t]) & 0xFFFFFFFF
        assert out[96 + t] == v.bit_count() + 32 - v.bit_length() + (v & -v).bit_length()


@program(source="scratch")
def scratch(rng: np.random.Generator) -> Judge:
    """An array of each thread's own, sorted by insertion"""
    x, out = rng.integers(-100, 100, (32, 16)).astype(np.int32), np.zeros((32, 16), np.int32)
    yield Launch(flat(x, out), "scratch")
    assert np.array_equal(out, np.sort(x, 1))


@program(source="atomics", ordered=False)
def atomics(rng: np.random.Generator) -> Judge:
    """Atomics: add, greatest, least, compare and swap"""
    x, count, extremes = rng.integers(1, 1000, 100).astype(np.int32), np.zeros(8, np.int32), np.array([0, 9999, 0], np.int32)
    yield Launch(flat(x, count, extremes), "atomics", grid=4)
    assert np.array_equal(count, np.bincount(x % 8, minlength=8))
    assert extremes[:2].tolist() == [x.max(), x.min()]
    assert extremes[2] in x


@program(source="complex_map")
def complex_map(rng: np.random.Generator) -> Judge:
    """Complex numbers: escape times"""
    z, out = rng.uniform(-2, 0.6, 64) + 1j * rng.uniform(-1.2, 1.2, 64), np.zeros(64, np.int32)
    yield Launch(flat(z, out), "complex_map", grid=2)
    for c, n in zip(z, out, strict=True):
        v, k = 0j, 0
        while k < 50 and v.real * v.real + v.imag * v.imag < 4:
            v, k = v * v + c, k + 1
        assert n == k


@program(source="talk", ordered=False)
def talk(rng: np.random.Generator) -> Judge:
    """print of Numba"""
    result = yield Launch(flat(np.arange(10, 42, dtype=np.int32)), "talk")
    if result:
        assert result.printed == "thread 0 has 10\nthread 1 has 11\nthread 2 has 12\n"
