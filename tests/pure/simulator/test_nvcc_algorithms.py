"""Algorithms that nvcc compiled (tests/data/cuda/algorithms.cu), against numpy, under the fair and a random schedule."""

import numpy as np
import pytest

from ptx_corpus import sample
from warpsmith.simulator import simulate

rng = np.random.default_rng(9)


@pytest.fixture(params=["algorithms.sm_75", "algorithms.sm_90a.lines"])
def file(request):
    return request.param


@pytest.fixture(params=[None, 1], ids=["fair", "random"])
def order(request):
    return {} if request.param is None else {"schedule": "random", "seed": request.param}


def run(file, kernel, grid, block, *args, **options):
    result = simulate(sample(f"nvcc/{file}"), kernel=kernel, grid=grid, block=block, args=args, max_steps=200_000, **options)
    assert not result.findings, str(result)
    assert result.completed
    return result


def test_sgemm_with_register_tiles(file, order):
    m, n, k = 64, 128, 48
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    run(file, "sgemm", (2, 1), 256, c, a, b, m, n, k, **order)
    want = np.zeros((m, n), np.float32)
    for i in range(k):
        want = (a[:, i : i + 1].astype(np.float64) * b[i].astype(np.float64) + want).astype(np.float32)
    assert np.array_equal(c, want)


def test_nbody_with_dynamic_shared_memory(file, order):
    n = 200
    body = np.concatenate([rng.standard_normal((n, 3)), rng.random((n, 1))], axis=1).astype(np.float32)
    force = np.zeros((n, 4), np.float32)
    run(file, "nbody", 2, 128, force, body, n, dynamic_shared=128 * 16, **order)
    d = body[None, :, :3].astype(np.float64) - body[:, None, :3]
    r = 1 / np.sqrt((d * d).sum(axis=2) + 0.01)
    want = (d * (body[:, 3] * r**3)[..., None]).sum(axis=1)
    # the tile is padded with massless bodies at the origin
    assert np.allclose(force[:, :3], want, rtol=1e-4, atol=1e-3)


def test_merge_sort(file, order):
    data = rng.integers(-1000, 1000, 1024).astype(np.int32)
    want = np.sort(data)
    run(file, "merge_sort", 1, 256, data, 1024, **order)
    assert np.array_equal(data, want)


def test_chained_scan_waits_for_the_block_before(file, order):
    data, out = rng.integers(-50, 50, 12 * 128).astype(np.int32), np.zeros(12 * 128, np.int32)
    sums, flags, ticket = np.zeros(12, np.int32), np.zeros(12, np.int32), np.zeros(1, np.int32)
    run(file, "chained_scan", 12, 128, out, data, sums, flags, ticket, **order)
    assert np.array_equal(out, np.cumsum(data))


def test_lanes_of_a_warp_compete_for_a_lock(file, order):
    lock, value = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run(file, "lock_each", 2, 32, lock, value, 2, **order)
    assert value[0] == 2 * 32 * 2
    assert lock[0] == 0


def test_spmv(file, order):
    rows, width = 20, 90
    dense = rng.standard_normal((rows, width)) * (rng.random((rows, width)) < 0.4)
    start = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int32)
    column, value = np.nonzero(dense)[1].astype(np.int32), dense[dense != 0].astype(np.float32)
    x, y = rng.standard_normal(width).astype(np.float32), np.zeros(rows, np.float32)
    run(file, "spmv", 5, 128, y, start, column, value, x, rows, **order)
    assert np.allclose(y, dense @ x, atol=1e-4)


def test_partition_by_ballot(file, order):
    data, out, count = rng.integers(0, 100, 300).astype(np.int32), np.full(300, -1, np.int32), np.zeros(1, np.int32)
    run(file, "partition", 3, 128, out, data, count, 300, 40, **order)
    below = data[data < 40]
    assert count[0] == below.size
    assert np.array_equal(np.sort(out[: below.size]), np.sort(below))


def test_the_block_that_ends_last(file, order):
    data = rng.random(3000).astype(np.float32)
    out, partial, done = np.zeros(1, np.float32), np.zeros(6, np.float32), np.zeros(1, np.uint32)
    run(file, "last_block", 6, 128, out, data, partial, done, 3000, **order)
    assert np.allclose(out[0], data.sum(dtype=np.float64), rtol=1e-5)
    assert done[0] == 0
