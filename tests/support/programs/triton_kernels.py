"""tests/data/triton/kernels.py for three architectures: reductions, scans, sorts, atomics, products, attention."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

from programs.program import Collection, Judge
from programs.triton_more import EVERY, launch, philox

program = Collection("triton", "", EVERY)
PROGRAMS = program.programs


@program(source="vector_add")
def vector_add(rng: np.random.Generator) -> Judge:
    """Elementwise sum"""
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    out = np.zeros(1000, np.float32)
    yield launch("vector_add", x, y, out, 1000, grid=2)
    assert np.array_equal(out, x + y)


@program(source="row_argmax")
def row_argmax(rng: np.random.Generator) -> Judge:
    """Place of the greatest of a row"""
    x, out = rng.standard_normal((4, 400)).astype(np.float32), np.zeros(4, np.int32)
    yield launch("row_argmax", x, out, 400, grid=4)
    assert np.array_equal(out, x.argmax(1))


@program(source="softmax")
def softmax(rng: np.random.Generator) -> Judge:
    """Softmax of rows"""
    x, out = rng.standard_normal((3, 800)).astype(np.float32), np.zeros((3, 800), np.float32)
    yield launch("softmax", x, out, 800, grid=3)
    e = np.exp(x.astype(float))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-4)


@program(source="layer_norm")
def layer_norm(rng: np.random.Generator) -> Judge:
    """Layer norm of rows of halves"""
    x, (w, b) = rng.standard_normal((2, 720)).astype(np.float16), rng.standard_normal((2, 720)).astype(np.float32)
    out = np.zeros((2, 720), np.float16)
    yield launch("layer_norm", x, w, b, out, 720, np.float32(1e-5), grid=2)
    v = x.astype(float)
    d = v - v.mean(1, keepdims=True)
    assert np.allclose(out, d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w + b, atol=1e-2)


@program(source="scan_sum")
def scan_sum(rng: np.random.Generator) -> Judge:
    """Running sums"""
    x, out = rng.standard_normal((2, 512)).astype(np.float32), np.zeros((2, 512), np.float32)
    yield launch("scan_sum", x, out, grid=2)
    assert np.allclose(out, x.astype(float).cumsum(1), atol=1e-4)


@program(source="sort_rows")
def sort_rows(rng: np.random.Generator) -> Judge:
    """Rows sorted by a bitonic network"""
    x, out = rng.integers(-1000, 1000, (3, 128)).astype(np.int32), np.zeros((3, 128), np.int32)
    yield launch("sort_rows", x, out, grid=3)
    assert np.array_equal(out, np.sort(x, 1))


@program(source="histogram")
def histogram(rng: np.random.Generator) -> Judge:
    """A histogram in shared memory, added to global memory"""
    v, bins = rng.integers(0, 64, 2048).astype(np.int32), np.zeros(64, np.int32)
    yield launch("histogram", v, bins, grid=4)
    assert np.array_equal(bins, np.bincount(v, minlength=64))


@program(source="atomics", ordered=False)
def atomics(rng: np.random.Generator) -> Judge:
    """Atomics of every kind; an exchange leaves one of the values"""
    whole, f, n = np.zeros(20, np.int32), np.zeros(7, np.float32), 200
    yield launch("atomics", whole, f, n, grid=2)
    i = np.arange(n)
    assert f.tolist() == [1.5 * (i % 7 == k).sum() for k in range(7)]
    assert whole[:5].tolist() == [i[i % 5 == k].max() for k in range(5)]
    assert all(whole[8 + k] % 3 == k for k in range(3))
    assert whole[16] == 1
    assert whole[17:].tolist() == [np.bitwise_or.reduce(i[i % 3 == k]) for k in range(3)]


@program(source="transpose")
def transpose(rng: np.random.Generator) -> Judge:
    """Transposition of halves"""
    x, out = rng.standard_normal((96, 160)).astype(np.float16), np.zeros((160, 96), np.float16)
    yield launch("transpose", x, out, 96, 160, grid=(2, 3))
    assert np.array_equal(out, x.T)


@program(source="random_dropout")
def random_dropout(rng: np.random.Generator) -> Judge:
    """Dropout by Philox"""
    x, out, p = rng.standard_normal(300).astype(np.float32), np.zeros(512, np.float32), np.float32(0.25)
    yield launch("random_dropout", x, out, 300, p, 77, grid=2)
    signed = philox(77, np.arange(300)).view(np.int32).astype(np.int64)
    keep = np.where(signed < 0, -signed - 1, signed) * 4.6566127342e-10 > p
    assert np.allclose(out[:300], np.where(keep, x / (1 - p), 0), rtol=1e-6)


@program(source="casts", archs=("sm_90", "sm_120"))
def casts(rng: np.random.Generator) -> Judge:
    """Conversions to halves, bfloats, both fp8 and bytes"""
    x, n = (rng.standard_normal(300) * 8).astype(np.float32), 300
    kinds = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int8]
    out = [np.zeros(n, kind) for kind in kinds]
    yield launch("casts", x, *out, n, grid=2)
    for got, kind in zip(out, kinds, strict=True):
        assert np.array_equal(got, x.astype(kind)), kind


@program(source="math")
def math(rng: np.random.Generator) -> Judge:
    """Functions: sine to error function, division, clamping"""
    x, y = rng.uniform(0.1, 3, (2, 100)).astype(np.float32)
    out = np.zeros(100, np.float32)
    yield launch("math", x, y, out, 100)
    from_libm = np.vectorize(_erf)
    v, w = x.astype(float), y.astype(float)
    r = np.sin(v) + np.cos(w) + np.log(v) + np.exp(w) + np.sqrt(v) + w + np.floor(v) + np.ceil(w) + from_libm(v)
    r = r + v * w + r + v / w + np.minimum(v, w) + 1 / (1 + np.exp(-v)) + np.log2(w) + np.clip(v, 0, 1)
    assert np.allclose(out, r, rtol=2e-5, atol=2e-5)


def _erf(v: float) -> float:
    term, total = v, v
    for n in range(1, 60):
        term *= -v * v / n
        total += term / (2 * n + 1)
    return total * 2 / np.pi**0.5


@program(source="persistent")
def persistent(rng: np.random.Generator) -> Judge:
    """A loop over tiles, software-pipelined"""
    x, out = rng.standard_normal(5000).astype(np.float32), np.zeros(5000, np.float32)
    yield launch("persistent", x, out, 5000, grid=2)
    assert np.array_equal(out, 2 * x)


@program(source="gather_flip")
def gather_flip(rng: np.random.Generator) -> Judge:
    """Gather, flip, split and join"""
    x, index = rng.standard_normal((16, 32)).astype(np.float32), rng.integers(0, 32, (16, 32)).astype(np.int32)
    out = np.zeros((16, 32), np.float32)
    yield launch("gather_flip", x, index, out)
    flipped = np.take_along_axis(x, index, 1)[:, ::-1]
    assert np.array_equal(out, flipped.reshape(16, 16, 2)[:, :, ::-1].reshape(16, 32))


@program(source="cross_entropy")
def cross_entropy(rng: np.random.Generator) -> Judge:
    """Cross entropy and its gradient, over rows longer than a block"""
    x, target = rng.standard_normal((3, 600)).astype(ml_dtypes.bfloat16), rng.integers(0, 600, 3).astype(np.int32)
    loss, grad = np.zeros(3, np.float32), np.zeros((3, 600), ml_dtypes.bfloat16)
    yield launch("cross_entropy", x, target, loss, grad, 600, grid=3)
    v = x.astype(float)
    log_sum = np.log(np.exp(v).sum(1))
    want = np.exp(v - log_sum[:, None])
    want[range(3), target] -= 1
    assert np.allclose(loss, log_sum - v[range(3), target], atol=1e-5)
    assert np.allclose(grad.astype(float), want, atol=4e-3)


def _product(kind: str, dtype: type, out_dtype: type, bound: float, archs: tuple[str, ...]) -> None:
    @program(name=f"matmul.{kind}", source=f"matmul.{kind}", archs=archs, slow=True)
    def judge(rng: np.random.Generator) -> Judge:
        a, b = rng.standard_normal((2, 128, 128)).astype(np.float32)
        a, b = ((t * 20).round().clip(-100, 100).astype(np.int8) if dtype is np.int8 else t.astype(dtype) for t in (a, b))
        c = np.zeros((128, 128), out_dtype)
        yield launch("matmul", a, b, c, 128, 128, 128, grid=(2, 2))
        assert np.abs(c.astype(float) - a.astype(float) @ b.astype(float)).max() <= bound

    judge.__doc__ = f"A product of {kind} on tensor cores"
    PROGRAMS[-1] = replace(PROGRAMS[-1], body=judge)


_product("fp16", np.float16, np.float16, 3e-2, EVERY)
_product("bf16", ml_dtypes.bfloat16, np.float32, 1e-3, EVERY)
_product("tf32", np.float32, np.float32, 6e-2, EVERY)
_product("int8", np.int8, np.int32, 0, EVERY)
_product("fp8", ml_dtypes.float8_e4m3fn, np.float32, 2e-1, ("sm_90", "sm_120"))


@program(source="matmul_descriptor", archs=("sm_90", "sm_120"), slow=True)
def matmul_descriptor(rng: np.random.Generator) -> Judge:
    """A product through tensor descriptors that the kernel builds (tensormap.replace), TMA loads and stores"""
    a, b = rng.standard_normal((2, 128, 128)).astype(np.float16)
    c = np.zeros((128, 128), np.float16)
    yield launch("matmul_descriptor", a, b, c, 128, 128, 128, grid=(2, 2))
    assert np.abs(c.astype(float) - a.astype(float) @ b.astype(float).T).max() < 5e-2


@program(source="attention", slow=True)
def attention(rng: np.random.Generator) -> Judge:
    """Attention with a length that fills no block"""
    n, scale = 80, np.float32(0.125 * 1.4426950408889634)
    q, k, v = rng.standard_normal((3, n, 64)).astype(np.float16)
    out = np.zeros((n, 64), np.float16)
    yield launch("attention", q, k, v, out, n, scale, grid=2)
    s = q.astype(float) @ k.astype(float).T * float(scale)
    p = np.exp2(s - s.max(1, keepdims=True))
    assert np.abs(out - p / p.sum(1, keepdims=True) @ v.astype(float)).max() < 4e-3
