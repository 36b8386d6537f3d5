"""tests/data/cuda/memory.cu: vectors, unions, constants, variables of a module, structures by value, address spaces."""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("nvcc", "memory", ("sm_75", "sm_90a.lines", "sm_100a.debug"))
PROGRAMS = program.programs
T = np.arange(32)


@program()
def vectors(rng: np.random.Generator) -> Judge:
    """Vectors of floats, doubles, shorts and chars"""
    x, out = rng.standard_normal((32, 4)).astype(np.float32), np.zeros((32, 4), np.float32)
    d, s, c = (
        rng.standard_normal((32, 2)),
        rng.integers(-99, 99, (32, 4)).astype(np.int16),
        rng.integers(0, 256, (32, 4)).astype(np.uint8),
    )
    before = d.copy(), s.copy(), c.copy()
    yield Launch([out, x, d, s, c])
    want = x.copy()
    want[:, 0] += x[:, 3]
    assert np.array_equal(out, want)
    assert np.array_equal(d, before[0][:, ::-1])
    assert np.array_equal(s, before[1][:, ::-1])
    assert np.array_equal(c, before[2][:, [1, 0, 3, 2]])


@program()
def unions(rng: np.random.Generator) -> Judge:
    """A union of a double, words and bytes"""
    m = rng.integers(0, 2**62, 32).astype(np.uint64)
    want = []
    for v in m.tolist():
        word = v ^ 0x80 << 24
        reverse = int(f"{word >> 32:032b}"[::-1], 2)
        want.append((word >> 32 << 32) | reverse)
    yield Launch([m])
    doubled = np.array(want, np.uint64).view(np.float64) * 2
    assert np.array_equal(m.view(np.float64), doubled)


@program(machine=True)
def by_value(rng: np.random.Generator) -> Judge:
    """A structure by value (__grid_constant__) with pointers in it"""
    x, out, n = rng.standard_normal(32).astype(np.float32), np.zeros(32, np.float32), 20
    pad = rng.integers(-100, 100, 40).astype(np.int8)
    yield Launch([(np.float32(2.5), np.int32(n), x, out, pad.tobytes())])
    assert np.allclose(out[:n], x[:n] * np.float32(2.5) + pad[:n], atol=1e-5)
    assert not out[n:].any()


@program()
def dynamic_shared(rng: np.random.Generator) -> Judge:
    """Dynamic and static shared memory, constants with initial values"""
    data, n = rng.standard_normal(64).astype(np.float32), 64
    total, third = data.astype(float).sum(), data[3] * np.float32(4)
    yield Launch([data, n], block=64, shared=256)
    assert np.isclose(data[0], total + third - 1, atol=1e-5)


@program(ordered=False)
def globals(rng: np.random.Generator) -> Judge:
    """Variables of the module: counters, vectors, strings, pointers to others, managed memory"""
    out = np.zeros(32, np.int32)
    yield Launch([out])
    rest = np.array(list(b"hell"))[T & 3] + np.array([4, 5, 6])[T % 3] + 2 + 3 + 5
    assert sorted(out - rest) == list(range(5, 37))
