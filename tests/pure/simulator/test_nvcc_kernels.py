"""Kernels that nvcc compiled (tests/data/cuda/launchable.cu), against numpy."""

import numpy as np
import pytest

from ptx_corpus import sample
from warpsmith.simulator import simulate

FILES = ["launchable.sm_75", "launchable.sm_90a", "launchable.sm_90a.lines"]
rng = np.random.default_rng(5)


def run(file, kernel, grid, block, *args, **options):
    result = simulate(sample(f"nvcc/{file}"), kernel=kernel, grid=grid, block=block, args=args, **options)
    assert not result.findings, str(result)
    assert result.completed
    return result


def random_f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.fixture(params=FILES)
def file(request):
    return request.param


@pytest.fixture(params=[{}, {"schedule": "random", "seed": 3}], ids=["fair", "random"])
def order(request):
    return request.param


def test_vector_add(file, order):
    a, b, c = random_f32(1000), random_f32(1000), np.zeros(1000, np.float32)
    run(file, "vector_add", 8, 128, c, a, b, 1000, **order)
    assert np.array_equal(c, a + b)


def test_saxpy_strides_over_a_small_grid(file, order):
    x, y = random_f32(5000), random_f32(5000)
    want = (x.astype(np.float64) * 0.25 + y).astype(np.float32)
    run(file, "saxpy", 3, 64, y, x, 0.25, 5000, **order)
    assert np.array_equal(y, want)


def test_block_sum(file, order):
    x, out = random_f32(1000), np.zeros(4, np.float32)
    run(file, "block_sum", 4, 256, out, x, 1000, **order)
    padded = np.zeros(1024, np.float32)
    padded[:1000] = x
    tree = padded.reshape(4, 256)
    while tree.shape[1] > 1:
        half = tree.shape[1] // 2
        tree = tree[:, :half] + tree[:, half:]
    assert np.array_equal(out, tree[:, 0])


def test_transpose(file, order):
    x, out = random_f32(50, 70), np.zeros((70, 50), np.float32)
    run(file, "transpose", (3, 2), (32, 8), out, x, 50, 70, **order)
    assert np.array_equal(out, x.T)


def test_histogram(file, order):
    data, bins = rng.integers(0, 256, 10000, dtype=np.uint8), np.zeros(256, np.uint32)
    run(file, "histogram", 4, 256, bins, data, 10000, **order)
    assert np.array_equal(bins, np.bincount(data, minlength=256))


def test_matmul(file, order):
    n = 48
    a, b, c = random_f32(n, n), random_f32(n, n), np.zeros((n, n), np.float32)
    run(file, "matmul", (3, 3), (16, 16), c, a, b, n, **order)
    want = np.zeros((n, n), np.float32)
    for k in range(n):
        want = (a[:, k : k + 1].astype(np.float64) * b[k].astype(np.float64) + want).astype(np.float32)
    assert np.array_equal(c, want)


def test_inclusive_scan(file, order):
    x, out = rng.integers(-100, 100, 700, dtype=np.int32), np.zeros(700, np.int32)
    run(file, "inclusive_scan", 1, 704, out, x, 700, **order)
    assert np.array_equal(out, np.cumsum(x))


def test_softmax(file, order):
    x, out = random_f32(3, 200), np.zeros((3, 200), np.float32)
    run(file, "softmax", 3, 128, out, x, 200, **order)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_bitonic_sort(file, order):
    x = rng.integers(0, 2**32, 512, dtype=np.uint32)
    want = np.sort(x)
    run(file, "bitonic_sort", 1, 512, x, **order)
    assert np.array_equal(x, want)


def test_mandelbrot_diverges_by_lane(file, order):
    w, h = 40, 24
    out = np.zeros((h, w), np.int32)
    run(file, "mandelbrot", (3, 3), (16, 8), out, w, h, 60, **order)
    cx = -2.0 + 3.0 * np.arange(w)[None] / w
    cy = -1.5 + 3.0 * np.arange(h)[:, None] / h
    a = np.zeros((h, w))
    b = np.zeros((h, w))
    want = np.zeros((h, w), np.int32)
    inside = np.ones((h, w), bool)
    for _ in range(60):
        inside &= a * a + b * b < 4.0
        want += inside
        a, b = np.where(inside, a * a - b * b + cx, a), np.where(inside, 2.0 * a * b + cy, b)
    assert np.array_equal(out, want)
