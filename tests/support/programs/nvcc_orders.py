"""tests/data/cuda/orders.cu: threads that wait for each other."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from programs.program import Collection, Judge, Launch

EVERY = ("sm_80", "sm_90a.lines", "sm_120a", "sm_90a.next")
CLUSTERS = ("sm_90a.lines", "sm_120a", "sm_90a.next")
program = Collection("nvcc", "orders", EVERY)


@program()
def scopes(rng: np.random.Generator) -> Judge:
    """cuda::atomic and atomic_ref at block, device and system scope"""
    out, wide, f = np.zeros(4, np.int32), np.zeros(2, np.uint64), np.zeros(2, np.float32)
    yield Launch([out, wide, f], grid=3, block=64)
    assert out.view(np.uint32).tolist() == [192, 2**32 - 1, 2**32 - 63, 3 * 63 * 32]
    assert wide.tolist() == [2**64 - 1, 3 * 63]
    assert f.tolist() == [96, 63]


@program()
def message_passing(rng: np.random.Generator) -> Judge:
    """Release and acquire between blocks"""
    data, flag, out = np.zeros(32, np.int32), np.zeros(1, np.int32), np.zeros(96, np.int32)
    yield Launch([data, flag, out], grid=4, block=32)
    assert np.array_equal(out, np.tile(np.arange(31, -1, -1) * 3 + 1, 3))


@program()
def latch_and_semaphore(rng: np.random.Generator) -> Judge:
    """cuda::latch and cuda::counting_semaphore in shared memory"""
    out = np.zeros(5, np.int32)
    yield Launch([out], block=64)
    assert out.tolist() == [1, 0, 16, 32, 48]


@program()
def roles(rng: np.random.Generator) -> Judge:
    """cuda::pipeline with a producer warp and a consumer warp"""
    n = 6
    x, out = rng.standard_normal((n, 32)).astype(np.float32), np.zeros(32, np.float32)
    yield Launch([out, x, n], block=64)
    want = np.zeros(32)
    for i in range(n):
        want += x[i, ::-1].astype(float) * (i + 1)
    assert np.allclose(out, want, atol=1e-5)


@program(machine=True)
def grid_steps(rng: np.random.Generator) -> Judge:
    """grid.sync() of cooperative groups: a stencil in steps over all blocks"""
    x, y, steps = rng.integers(-9, 9, 192).astype(np.int32), np.zeros(192, np.int32), 5
    want = x.copy()
    yield Launch([x, y, steps], grid=3, block=64)
    for _ in range(steps):
        want = np.roll(want, -1) * 3 - np.roll(want, 1)
    assert np.array_equal(y, want)


@program(remarks=("shared-race",))
def large_tiles(rng: np.random.Generator) -> Judge:
    """Tiles over two warps, exclusive scans, group copies, split barriers of cooperative groups"""
    x, out = rng.integers(-100, 100, 128).astype(np.int32), np.zeros(512, np.int32)
    yield Launch([out, x], block=128)
    y = x[::-1].reshape(2, 64)
    assert np.array_equal(out[:128], np.repeat(y.sum(1), 64))
    assert np.array_equal(out[128:256].reshape(2, 64), (y[:, 5] + (y > 9).any(1) * 1000 + [0, 10000])[:, None] + 0 * y)
    z = y.reshape(4, 32)
    assert np.array_equal(out[256:384].reshape(4, 32), z.cumsum(1) - z)
    assert np.array_equal(out[384:], y.ravel()[np.arange(128) * 5 % 128])


@program()
def small_atomics(rng: np.random.Generator) -> Judge:
    """Atomics of halves, doubles, 16-bit swaps, wrapping counters"""
    h, b = np.zeros(2, np.float16), np.zeros(2, ml_dtypes.bfloat16)
    s, d, i = np.zeros(2, np.uint16), np.zeros(1), np.array([3, 2, -1, 0, 0, 0], np.int32)
    yield Launch([h, b, s, d, i])
    assert h.tolist() == [32, 16]
    assert b.tolist() == [64, 32]
    assert (s.tolist(), d.tolist()) == ([96, 0], [8])
    assert i.tolist() == [(3 + 32) % 10, (2 - 32) % 10, 0, 0, 496, 496]


@program(archs=CLUSTERS)
def wide_atomics(rng: np.random.Generator) -> Judge:
    """Atomics of float2 and float4; compare-and-swap of 16 bytes"""
    f2, f4, box = np.zeros(2, np.float32), np.zeros(4, np.float32), np.zeros(4, np.uint32)
    yield Launch([f2, f4, box])
    assert (f2.tolist(), f4.tolist()) == ([32, 64], [32, 64, 128, 256])
    assert box.tolist() == [32, 0, 496, 0]


@program(archs=CLUSTERS)
def ring_of_blocks(rng: np.random.Generator) -> Judge:
    """Distributed shared memory: blocks of a cluster write to the next one's"""
    out = np.zeros(128, np.int32)
    yield Launch([out], grid=4, cluster=4)
    rows = np.arange(4)[:, None] * 100 + np.arange(32)
    for _ in range(4):
        rows = np.roll(rows, 1, 0) * 2 + 1
    assert np.array_equal(out[:128], rows.ravel())


PROGRAMS = program.programs
