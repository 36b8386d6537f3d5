"""tests/data/mojo/kernels.mojo: a module for each kernel."""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("mojo", "", ("sm_80", "sm_90a"))


@program(source="exponential")
def exponential(rng: np.random.Generator) -> Judge:
    """The exponential function"""
    n = 100
    a, b = (rng.normal(size=n).astype(np.float32) for _ in range(2))
    c = np.zeros(n, np.float32)
    yield Launch([a, b, c, n], grid=4)
    np.testing.assert_allclose(c, np.exp(a.astype(np.float64)) + 2 * b, rtol=0, atol=2e-6)


def _steps(v: int) -> int:
    steps = 0
    while v > 1:
        v = v * 3 + 1 if v % 2 else v // 2
        steps += 1
    return steps


@program(source="collatz")
def collatz(rng: np.random.Generator) -> Judge:
    """A loop of each lane's own length; remainders and quotients that round down"""
    n = 100
    a = rng.integers(1, 1000, n, dtype=np.int32)
    c = np.zeros(n, np.int32)
    yield Launch([a, c, n], grid=4)
    assert c.tolist() == [_steps(v) * 100 + v // -7 for v in a.tolist()]


@program(source="sums")
def sums(rng: np.random.Generator) -> Judge:
    """Sums of warps"""
    n = 100
    a = rng.integers(-9, 9, n).astype(np.float32)
    c = np.zeros(4, np.float32)
    yield Launch([a, c, n], grid=4)
    assert c.tolist() == [a[i : i + 32].sum() for i in range(0, n, 32)]


PROGRAMS = program.programs
