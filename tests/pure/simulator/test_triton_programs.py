"""Larger programs that Triton compiled (tests/data/triton/kernels.py): locks, scans, pipelines, clusters, warp specialisation.

Tensor descriptors are built on the device, in the scratch memory of the second last parameter.
"""

import lzma
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.simulator import simulate

DATA = Path(__file__).parents[2] / "data" / "ptx" / "triton"


@cache
def module(name: str):
    path = DATA / f"{name}.ptx"
    text = path.read_text() if path.exists() else lzma.decompress((DATA / f"{name}.ptx.xz").read_bytes()).decode()
    return parse(text, name)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def run(name, grid, *args, block=128, cluster=1):
    """Simulate under the fair and a random schedule; nothing worse than a remark on a missing fence may be found."""
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    for order in ({}, {"schedule": "random", "seed": 1}):
        for a, fresh in zip(args, given, strict=True):
            if isinstance(a, np.ndarray):
                a[...] = fresh
        scratch = [np.zeros(1 << 14, np.uint8), np.zeros(16, np.uint8)]
        result = simulate(
            module(name), grid=grid, block=block, cluster=cluster, args=[*args, *scratch], dynamic_shared=100 * 1024, **order
        )
        assert not [f for f in result.findings if f.severity == "error"], str(result)
        assert result.completed
    return result


def wide(a):
    return a.astype(np.float64)


def test_a_recurrence_by_associative_scan(rng):
    a, b = rng.uniform(0.5, 1, (3, 400)).astype(np.float32), rng.standard_normal((3, 400)).astype(np.float32)
    out, h = np.zeros((3, 400), np.float32), np.zeros(3)
    run("recurrence.sm_80", 3, a, b, out, 400)
    for t in range(400):
        h = wide(a[:, t]) * h + b[:, t]
        assert np.allclose(out[:, t], h, atol=3e-6)


def test_layer_norm_backward_behind_locks(rng):
    rows, n = 6, 200
    x, dy, w = (rng.standard_normal(s).astype(np.float16) for s in ((rows, n), (rows, n), n))
    mean, rstd = wide(x).mean(1, keepdims=True), 1 / np.sqrt(wide(x).var(1, keepdims=True) + 1e-5)
    dx, dw, db = np.zeros((rows, n), np.float32), np.zeros((2, n), np.float32), np.zeros((2, n), np.float32)
    scale = [v.astype(np.float32).ravel() for v in (mean, rstd)]
    run("layer_norm_backward.sm_90", rows, x, dy, w, dx, dw, db, *scale, np.zeros(4, np.int32), n)
    h, g = (wide(x) - mean) * rstd, wide(dy) * wide(w)
    want = (g - h * (h * g).mean(1, keepdims=True) - g.mean(1, keepdims=True)) * rstd
    assert np.allclose(dx, want, atol=2e-6)
    assert np.allclose(dw.sum(0), (h * wide(dy)).sum(0), atol=4e-6)
    assert np.allclose(db.sum(0), wide(dy).sum(0), atol=4e-6)


def test_split_k_over_clusters(rng):
    a, b = rng.standard_normal((128, 160)).astype(np.float16), rng.standard_normal((160, 64)).astype(np.float16)
    c = np.zeros((128, 64), np.float32)
    run("split_k.cluster.sm_90", (4, 1, 2), a, b, c, 128, 64, 160, cluster=2)
    assert np.allclose(c, wide(a) @ wide(b), atol=3e-5)


def attention(q, k, v, causal):
    s = wide(q) @ wide(k).swapaxes(-1, -2) / 8
    s = np.where(np.tri(s.shape[-1], dtype=bool), s, -1e30) if causal else s
    p = np.exp(s - s.max(-1, keepdims=True))
    total = p.sum(-1, keepdims=True)
    return p @ wide(v) / total, (s.max(-1) + np.log(total[..., 0])) / np.log(2)


def test_causal_attention(rng):
    q, k, v = (rng.standard_normal((2, 192, 64)).astype(np.float16) for _ in range(3))
    out, lse = np.zeros((2, 192, 64), np.float16), np.zeros((2, 192), np.float32)
    run("attention_causal.sm_80", (3, 2), q, k, v, out, lse, 192, np.float32(0.125))
    want, want_lse = attention(q, k, v, causal=True)
    assert np.allclose(out, want, atol=2e-3)
    assert np.allclose(lse, want_lse, atol=2e-3)


def test_attention_with_descriptors(rng):
    q, k, v = (rng.standard_normal((256, 64)).astype(np.float16) for _ in range(3))
    out = np.zeros((256, 64), np.float16)
    result = run("attention_tma.sm_90", 4, q, k, v, out, 256, np.float32(0.125))
    assert np.allclose(out, attention(q, k, v, causal=False)[0], atol=1e-3)
    # this compiler initialises the barrier of Q without a fence for the asynchronous proxy
    assert [(f.kind, f.severity) for f in result.findings] == [("uninitialised-barrier", "portability")]


@pytest.mark.parametrize(
    ("name", "dtype", "m", "k", "threads", "cluster"),
    [
        ("persistent_ws", np.float16, 192, 192, 384, 1),
        ("persistent_f8", ml_dtypes.float8_e4m3fn, 256, 256, 256, 1),
        ("persistent_cluster", np.float16, 256, 192, 128, 2),
    ],
)
def test_persistent_products(rng, name, dtype, m, k, threads, cluster):
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((128, k)).astype(dtype)
    c = np.zeros((m, 128), np.float16)
    run(f"{name}.sm_90", 2, a, b, c, m, 128, k, block=threads, cluster=cluster)
    assert np.abs(wide(c) - wide(a) @ wide(b).T).max() < 0.05


def test_top_values(rng):
    x = rng.standard_normal((2, 200)).astype(np.float32)
    values, out = np.zeros((2, 8), np.float32), np.zeros((2, 4), np.int32)
    run("topk.sm_80", 2, x, values, out, 200)
    assert np.array_equal(values, -np.sort(-x, 1)[:, :8])
    bits = np.bitwise_xor.reduce(x.view(np.int32), 1)
    assert np.array_equal(out, np.stack([x.argmax(1), x.argmin(1), (x > 0).sum(1), bits], 1))


def test_gather_flip_and_join(rng):
    x, index = rng.standard_normal((16, 32)).astype(np.float32), rng.integers(0, 32, (16, 32)).astype(np.int32)
    out = np.zeros((16, 32), np.float32)
    run("gather_flip.sm_80", 1, x, index, out)
    assert np.array_equal(out, np.take_along_axis(x, index, 1)[:, ::-1].reshape(16, 16, 2)[:, :, ::-1].reshape(16, 32))


def test_cross_entropy(rng):
    x, target = rng.standard_normal((3, 600)).astype(ml_dtypes.bfloat16), rng.integers(0, 600, 3).astype(np.int32)
    loss, grad = np.zeros(3, np.float32), np.zeros((3, 600), ml_dtypes.bfloat16)
    run("cross_entropy.sm_80", 3, x, target, loss, grad, 600)
    log_sum = np.log(np.exp(wide(x)).sum(1))
    want = np.exp(wide(x) - log_sum[:, None])
    want[range(3), target] -= 1
    assert np.allclose(loss, log_sum - wide(x)[range(3), target], atol=1e-5)
    assert np.allclose(wide(grad), want, atol=4e-3)


def test_scaled_int8(rng):
    a, b = (rng.integers(-128, 128, (128, 192)).astype(np.int8) for _ in range(2))
    by = [rng.uniform(0.001, 0.01, 128).astype(np.float32) for _ in range(2)]
    c = np.zeros((128, 128), ml_dtypes.bfloat16)
    run("scaled_int8.sm_80", (2, 2), a, by[0], b, by[1], c, 128, 128, 192)
    assert np.allclose(wide(c), wide(a) @ wide(b).T * by[0][:, None] * by[1], rtol=4e-3, atol=1e-6)
