"""Kernels that Triton compiled (tests/data/triton/kernels.py), against numpy; the last two parameters are scratch pointers."""

import ml_dtypes
import numpy as np
import pytest

from ptx_corpus import sample
from warpsmith.simulator import simulate

SHARED = 96 * 1024
rng = np.random.default_rng(3)


def run(name, grid, *args, **options):
    result = simulate(sample(f"triton/{name}"), grid=grid, block=128, args=[*args, 0, 0], dynamic_shared=SHARED, **options)
    assert not result.findings, str(result)
    assert result.completed
    return result


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("arch", [75, 80, 90, 120])
def test_vector_add(arch):
    x, y, out = normal(1000), normal(1000), np.zeros(1000, np.float32)
    result = simulate(sample(f"triton/vector_add.sm_{arch}"), grid=2, block=128, args=[x, y, out, 1000, 0, 0])
    assert not result.findings, str(result)
    assert np.array_equal(out, x + y)


@pytest.mark.parametrize("arch", [80, 90])
def test_row_sum(arch):
    x, out = normal(3, 912), np.zeros(3, np.float32)
    run(f"row_sum.sm_{arch}", 3, x, out, 912)
    assert np.allclose(out, x.sum(axis=1, dtype=np.float64), rtol=1e-4, atol=1e-4)


def test_row_argmax():
    x, out = normal(4, 400), np.zeros(4, np.int32)
    run("row_argmax.sm_90", 4, x, out, 400)
    assert np.array_equal(out, x.argmax(axis=1))


@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 1}], ids=["fair", "random"])
def test_softmax(arch, options):
    x, out = normal(3, 800), np.zeros((3, 800), np.float32)
    run(f"softmax.sm_{arch}", 3, x, out, 800, **options)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("arch", [80, 100])
def test_layer_norm(arch):
    x, w, b = normal(2, 720).astype(np.float16), normal(720), normal(720)
    out = np.zeros((2, 720), np.float16)
    run(f"layer_norm.sm_{arch}", 2, x, w, b, out, 720, 1e-5)
    v = x.astype(np.float64)
    d = v - v.mean(axis=1, keepdims=True)
    want = d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b
    assert np.abs(out - want).max() < 2e-2


@pytest.mark.parametrize("arch", [80, 90])
def test_scan_and_histogram(arch):
    x, out = normal(1024), np.zeros(1024, np.float32)
    run(f"scan_sum.sm_{arch}", 2, x, out)
    assert np.allclose(out.reshape(2, 512), np.cumsum(x.reshape(2, 512), axis=1, dtype=np.float64), atol=1e-4)
    v, bins = rng.integers(0, 64, 2048).astype(np.int32), np.zeros(64, np.int32)
    run(f"histogram.sm_{arch}", 4, v, bins)
    assert np.array_equal(bins, np.bincount(v, minlength=64))


def test_sort_rows():
    x, out = rng.integers(-1000, 1000, (3, 128)).astype(np.int32), np.zeros((3, 128), np.int32)
    run("sort_rows.sm_90", 3, x, out)
    assert np.array_equal(out, np.sort(x, axis=1))


@pytest.mark.parametrize("arch", [80, 90])
def test_transpose(arch):
    x, out = normal(96, 160).astype(np.float16), np.zeros((160, 96), np.float16)
    run(f"transpose.sm_{arch}", (2, 3), x, out, 96, 160)
    assert np.array_equal(out, x.T)


def operands(kind):
    a, b = normal(64, 128), normal(128, 64)
    if kind == "int8":
        a, b = (rng.integers(-50, 50, s.shape).astype(np.int8) for s in (a, b))
        return a, b, np.zeros((64, 64), np.int32), a.astype(np.int32) @ b.astype(np.int32), 0
    dtype = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "fp8": ml_dtypes.float8_e4m3fn}[kind]
    a, b = a.astype(dtype), b.astype(dtype)
    out = np.zeros((64, 64), np.float16 if kind == "fp16" else np.float32)
    error = {"fp16": 2e-2, "bf16": 1e-3, "tf32": 5e-2, "fp8": 1e-1}[kind]
    return a, b, out, a.astype(np.float64) @ b.astype(np.float64), error


@pytest.mark.parametrize(
    ("kind", "arch"),
    [("fp16", 80), ("fp16", 90), ("bf16", 90), ("tf32", 80), ("tf32", 90), ("int8", 80), ("int8", 90), ("fp8", 90)],
)
def test_matmul(kind, arch):
    a, b, out, want, error = operands(kind)
    run(f"matmul.{kind}.sm_{arch}", (1, 1), a, b, out, 64, 64, 128)
    assert np.abs(out.astype(np.float64) - want).max() <= error


@pytest.mark.parametrize("name", ["attention.sm_80", "attention.sm_90"])
def test_attention(name):
    length = 80
    q, k, v = (normal(length, 64).astype(np.float16) for _ in range(3))
    out = np.zeros((length, 64), np.float16)
    scale = 0.125 * 1.4426950408889634
    run(name, 2, q, k, v, out, length, scale)
    s = q.astype(np.float64) @ k.astype(np.float64).T * scale
    p = np.exp2(s - s.max(axis=1, keepdims=True))
    want = p / p.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    assert np.abs(out - want).max() < 4e-3
