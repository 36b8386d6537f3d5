"""tests/data/cuda/objects.cu: functions and objects of C++."""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("nvcc", "objects", ("sm_80", "sm_90a.lines", "sm_120a", "sm_90.debug", "sm_120a.next"))
T = np.arange(32)


@program()
def mutual_recursion(rng: np.random.Generator) -> Judge:
    """Functions that call each other, to a depth of each lane's own"""
    out = np.zeros(32, np.int32)
    yield Launch([out])
    ackermann = np.where(T & 1, T % 4 + 2, T % 4 + 1)
    assert np.array_equal(out, 1 - T % 9 % 2 + 10 * ackermann)


@program()
def dynamic_types(rng: np.random.Generator) -> Judge:
    """Virtual functions through two bases, of objects from new, with virtual destructors"""
    out, n = np.zeros(32, np.int32), 4
    yield Launch([out, n])
    cricket = (T + n) % 3 == 0
    assert np.array_equal(out, (2 + n + 6 * cricket) * 1000 + T + 5 + 100)


@program()
def linked_list(rng: np.random.Generator) -> Judge:
    """Lists on the device's heap: built, reversed, freed"""
    out, n = np.zeros(32, np.int32), 6
    yield Launch([out, n])
    want = [sum((i + 1) * i * t for i in range(n + t % 3)) for t in range(32)]
    assert out.tolist() == want


@program()
def stack_memory(rng: np.random.Generator) -> Judge:
    """alloca of a size of each thread's own"""
    out, n = np.zeros(32, np.int32), 3
    yield Launch([out, n])
    for t in range(32):
        size, total = 1 + (t + n) % 7, 0
        for i in reversed(range(size)):
            total = total * 3 + i * i + t
        assert out[t] == total


@program()
def lambdas(rng: np.random.Generator) -> Judge:
    """Closures, fold expressions, and array, span, optional and tuple of libcu++"""
    out, k = np.zeros(32, np.int32), 5
    yield Launch([out, k])
    y = np.where(T & 1, 7, -1)
    assert np.array_equal(out, k * (T + 1) * 2 + T + y + 4 + T + (T & 3) + (T >> 1))


# the debug build copies padding to global memory: a finding
@program(archs=("sm_80", "sm_90a.lines", "sm_120a"), machine=True)
def operations(rng: np.random.Generator) -> Judge:
    """Pointers to functions stored to memory by one launch and called through by the next"""
    box, x = np.zeros(64, np.uint64), rng.standard_normal(32).astype(np.float32)
    want = x.copy()
    yield Launch([box, x, 0])
    assert np.array_equal(x, want)
    yield Launch([box, x, 1])
    for t in range(32):
        for _ in range(t & 3):
            want[t] = (want[t] + np.float32(1.25), want[t] * np.float32(1.25), min(want[t], np.float32(1.25)))[t % 3]
    assert np.array_equal(x, want)


REPORT = """\
3 -7 4294967289 fffffff9 2A 52 q|   42|42   |00042|+42| 42|0x2a|052
-7 -7 65529 249 -7 1099511627776 18446744073709551609 ffffffffffffffff
-2.718280 -2.718  -2.72e+00 -2.71828 -2.71828E-07 -0x1.5bf0995aaf79p+1 -2.718280 -2.718280E+00|-2.7183     |-3
share lod constant      right|left    |cu (nil) %
    42|42    |-2.72 no arguments
plain
"""


@program(ordered=False)
def report(rng: np.random.Generator) -> Judge:
    """printf: every conversion, strings in shared, local and constant memory"""
    result = yield Launch([np.array([3, -7, 42], np.int32), np.float64(-2.71828)])
    if result:
        lines = [f"{t} of 32: {t / 2:f}\n" for t in range(3)]
        assert result.printed == REPORT + "".join(lines)


@program()
def checked(rng: np.random.Generator) -> Judge:
    """assert that holds"""
    out = np.zeros(32, np.int32)
    yield Launch([out, 32])
    assert np.array_equal(out, T)


PROGRAMS = program.programs
