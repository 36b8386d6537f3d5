"""Calls and control flow that nvcc compiled (tests/data/cuda/control.cu): recursion, pointers, tables, printf, traps."""

import numpy as np
import pytest

from ptx_corpus import sample
from warpsmith.simulator import simulate

FILES = ["control.sm_75", "control.sm_90.debug", "control.sm_100a", "control.sm_90a.lines"]
THREADS = np.arange(64)
rng = np.random.default_rng(1)


@pytest.fixture(params=FILES)
def file(request):
    return request.param


def run(file, kernel, block, *args):
    result = simulate(sample(f"nvcc/{file}"), kernel=kernel, grid=1, block=block, args=args, max_steps=100000)
    assert not result.findings, str(result)
    assert result.completed
    return result


def test_recursion_with_lanes_at_different_depths(file):
    out = np.zeros(64, np.int32)
    run(file, "recursion", 64, out, 10)
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert out.tolist() == [fibonacci[t % 10] for t in range(64)]


@pytest.mark.parametrize(("which", "want"), [(0, 2 * THREADS), (1, 3 * THREADS), (2, THREADS**2)])
def test_function_pointers_from_a_table_in_global_memory(file, which, want):
    out = np.zeros(64, np.int32)
    run(file, "pointers", 64, out, which)
    assert np.array_equal(out, want)


def test_structs_by_value(file):
    out = np.zeros(64)
    run(file, "structs", 64, out, 7)
    assert np.array_equal(out, 7 % 5 + THREADS + 8 + (ord("x") ^ 1))


def test_virtual_functions_diverge_by_target(file):
    out = np.zeros(64, np.float32)
    run(file, "virtuals", 64, out, 0)
    t = THREADS.astype(np.float32)
    assert np.array_equal(out, np.where(THREADS & 1, t * t, np.float32(3.14159) * t * t))


@pytest.mark.parametrize("n", range(10))
def test_switch_tables(file, n):
    x, out = rng.random(64).astype(np.float32) + np.float32(0.1), np.zeros(64, np.float32)
    run(file, "switches", 64, out, x, n)
    functions = [np.sin, lambda v: v * v + 1, np.negative, np.sqrt, np.reciprocal, np.exp2, lambda v: v, np.rint]
    want = functions[n](x) if n < 8 else 0 * x
    assert np.allclose(out, want, rtol=1e-5)


def test_local_arrays_with_computed_indices(file):
    index, out, n = rng.integers(0, 100, 64).astype(np.int32), np.zeros(64, np.int32), 20
    run(file, "local_array", 64, out, index, n)
    for t in range(64):
        s = [i * n + t for i in range(32)]
        for j in (int(i) & 31 for i in index[:n]):
            s[j], s[31 - j] = s[31 - j], s[j]
        assert out[t] == s[index[t] & 31]


def test_loops_with_a_trip_count_per_lane(file):
    out = np.zeros(64, np.uint32)
    run(file, "collatz", 64, out, 60)

    def steps(x):
        n = 0
        while x != 1:
            x = 3 * x + 1 if x & 1 else x // 2
            n += 1
        return n

    assert out.tolist() == [steps(i + 1) if i < 60 else 0 for i in range(64)]


def test_printf(file):
    result = run(file, "hello", 64, 3)
    lines = [f"thread {t} of 3: {0.5 * t:f} text\n" for t in range(3)]
    assert result.printed == "".join(lines)


def test_trap_ends_the_launch(file):
    result = simulate(sample(f"nvcc/{file}"), kernel="trap_if", grid=1, block=1, args=[np.array([-1], np.int32)])
    assert not result.completed
    assert [(f.kind, f.threads) for f in result.findings] == [("trap", "cta (0,0,0) warp 0 lanes 0")]


def test_malloc_gives_every_thread_memory(file):
    pointers = np.zeros(32, np.uint64)
    result = simulate(sample(f"nvcc/{file}"), kernel="heap", grid=1, block=32, args=[pointers, 4])
    assert not result.findings, str(result)
    assert len(set(pointers.tolist())) == 32
    assert pointers.min() >= 0x7000_0000_0000
