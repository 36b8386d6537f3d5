"""tests/data/triton/more.py. Triton appends two pointers to scratch memory to the parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.program import Collection, Judge, Launch

EVERY = ("sm_80", "sm_90", "sm_120")
program = Collection("triton", "", EVERY)
PROGRAMS = program.programs
SHARED = 96 * 1024


def launch(kernel: str, *args: Any, grid: Any = 1, warps: int = 4) -> Launch:
    """A launch as Triton makes it."""
    scratch = [np.zeros(1 << 14, np.uint8), np.zeros(16, np.uint8)]
    return Launch([*args, *scratch], kernel, grid=grid, block=32 * warps, shared=SHARED, scratch=2)


@program(source="reductions")
def reductions(rng: np.random.Generator) -> Judge:
    """Reductions along both axes: least, greatest, their places, product, sum, exclusive or"""
    x, out = rng.integers(-50, 50, (16, 64)).astype(np.int32), np.zeros(4 * 16 + 3 * 64, np.int32)
    yield launch("reductions", x, out)
    remainder = np.fmod(x, 3) - 1
    rows = [x.min(1), x.argmin(1), remainder.prod(1, dtype=np.int32), np.bitwise_xor.reduce(x, 1)]
    assert np.array_equal(out, np.concatenate([*rows, x.max(0), x.argmax(0), x.sum(0)]))


@program(source="scans")
def scans(rng: np.random.Generator) -> Judge:
    """Scans along both axes, from both ends"""
    x, out = rng.integers(-50, 50, (8, 64)).astype(np.int32), np.zeros((3, 8, 64), np.int32)
    yield launch("scans", x, out)
    assert np.array_equal(out[0], x[:, ::-1].cumsum(1)[:, ::-1])
    assert np.array_equal(out[1], x.cumsum(0))
    assert np.array_equal(out[2], (np.fmod(x, 3) - 1).cumprod(1, dtype=np.int32))


@program(source="sort_down")
def sort_down(rng: np.random.Generator) -> Judge:
    """Rows sorted downwards"""
    x, out = rng.standard_normal((4, 32)).astype(np.float32), np.zeros((4, 32), np.float32)
    yield launch("sort_down", x, out)
    assert np.array_equal(out, -np.sort(-x, axis=1))


def philox(seed: int, counter: np.ndarray) -> np.ndarray:
    """Philox 4x32-10 (Salmon et al., 2011) of counter (i, 0, 0, 0): the first word."""
    mask = np.uint64(0xFFFFFFFF)
    c = [counter.astype(np.uint64), *(np.zeros(counter.shape, np.uint64) for _ in range(3))]
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ k0, b & mask, (a >> np.uint64(32)) ^ c[3] ^ k1, a & mask]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & mask, (k1 + np.uint64(0xBB67AE85)) & mask
    return c[0].astype(np.uint32)


@program(source="random_numbers")
def random_numbers(rng: np.random.Generator) -> Judge:
    """Philox: uniform, normal and whole numbers"""
    uniform, normal, whole = np.zeros(256, np.float32), np.zeros(256, np.float32), np.zeros(256, np.int32)
    yield launch("random_numbers", uniform, normal, whole, 1234)
    want = philox(1234, np.arange(256))
    assert np.array_equal(whole.view(np.uint32), want)
    signed = want.view(np.int32).astype(np.int64)
    positive = np.where(signed < 0, -signed - 1, signed)
    assert np.allclose(uniform, positive * 4.6566127342e-10, rtol=1e-6)
    assert abs(normal.mean()) < 0.3
    assert 0.8 < normal.std() < 1.2


@program(source="printing", ordered=False)
def printing(rng: np.random.Generator) -> Judge:
    """device_print and device_assert"""
    x = np.arange(32, dtype=np.int32) * 3
    result = yield launch("printing", x, 20, warps=1)
    if result:
        lines = [f"pid (0, 0, 0) idx ({i:2}) value: {3 * i if i < 20 else 0}" for i in range(32)]
        assert [line.strip() for line in result.printed.splitlines()] == lines


@program(source="calls")
def calls(rng: np.random.Generator) -> Judge:
    """A function that is not inlined, with a loop of its own"""
    out = np.zeros(40, np.int32)
    yield launch("calls", out, 100, grid=40, warps=1)

    def steps(x: int) -> int:
        n = 0
        while x != 1 and n < 100:
            x, n = (3 * x + 1 if x % 2 else x // 2), n + 1
        return n

    assert out.tolist() == [steps(i + 1) for i in range(40)]


@program(source="of_libdevice")
def of_libdevice(rng: np.random.Generator) -> Judge:
    """Functions of libdevice"""
    x, out = rng.standard_normal(128).astype(np.float32), np.zeros((6, 128), np.float32)
    yield launch("of_libdevice", x, out, 128)
    v = x.astype(float)
    size = np.abs(v)
    want = [np.tan(v), np.arctan2(v, 0.5), size ** np.float32(1.7), np.log1p(size), None, None]
    for row, w in zip(out, want, strict=True):
        assert w is None or np.allclose(row, w, rtol=1e-6)
    hundred = (x * np.float32(100)).astype(float)
    assert np.allclose(out[5], np.fmod(hundred, float(np.float32(0.7))), atol=1e-6)


@program(source="assembly")
def assembly(rng: np.random.Generator) -> Judge:
    """Inline assembly on four bytes at a time"""
    x, y = rng.integers(0, 256, (2, 512)).astype(np.uint8)
    out = np.zeros(512, np.uint8)
    yield launch("assembly", x, y, out)
    assert np.array_equal(out, np.abs(x.astype(int) - y.astype(int)))


@program(source="integers")
def integers(rng: np.random.Generator) -> Judge:
    """64-bit and 8-bit arithmetic: quotients, remainders, shifts, high halves"""
    x, y = rng.integers(-(2**62), 2**62, 128) >> rng.integers(0, 40, 128), rng.integers(1, 2**40, 128)
    y *= rng.choice([-1, 1], 128)
    out = np.zeros((6, 128), np.int64)
    yield launch("integers", x, y, out)
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        high = (a % 2**64) * (b % 2**64) >> 64
        byte = (a + b + 128) % 256 - 128
        want = [a * b, quotient, a - quotient * b, (a >> 3) ^ (b << 5), high, byte]
        assert [(int(g) - w) % 2**64 for g, w in zip(out[:, i], want, strict=True)] == [0] * 6, i


@program(source="doubles")
def doubles(rng: np.random.Generator) -> Judge:
    """A product of doubles"""
    a, b = rng.standard_normal((2, 16, 16))
    c = np.zeros((16, 16))
    yield launch("doubles", a, b, c)
    assert np.allclose(c, a @ b, rtol=1e-13, atol=1e-13)


@program(source="batched")
def batched(rng: np.random.Generator) -> Judge:
    """Products of a batch of matrices of halves"""
    a, b = rng.standard_normal((2, 4, 16, 16)).astype(np.float16)
    c = np.zeros((4, 16, 16), np.float32)
    yield launch("batched", a, b, c)
    assert np.allclose(c, a.astype(float) @ b.astype(float), atol=1e-4)


@program(source="three_products")
def three_products(rng: np.random.Generator) -> Judge:
    """A product of floats as three of tf32, to float precision"""
    a, b = rng.standard_normal((2, 32, 32)).astype(np.float32)
    c = np.zeros((32, 32), np.float32)
    yield launch("three_products", a, b, c)
    assert np.allclose(c, a.astype(float) @ b.astype(float), atol=3e-5)


@program(source="descriptor_sum", archs=("sm_90", "sm_120"))
def descriptor_sum(rng: np.random.Generator) -> Judge:
    """Descriptors built on the device: tiles over the edge, reductions into memory"""
    x, out = rng.standard_normal((40, 68)).astype(np.float32), np.ones((40, 68), np.float32)
    yield launch("descriptor_sum", x, out, 40, 68, grid=(3, 3))
    assert np.allclose(out, 1 + x * np.float32(2) + x, atol=1e-6)


@program(source="descriptor_cube", archs=("sm_90", "sm_120"))
def descriptor_cube(rng: np.random.Generator) -> Judge:
    """Descriptors of three dimensions"""
    x, out = rng.standard_normal((4, 8, 64)).astype(np.float16), np.zeros((8, 4, 64), np.float16)
    yield launch("descriptor_cube", x, out)
    assert np.array_equal(out, x.transpose(1, 0, 2))


@program(source="half_atomics")
def half_atomics(rng: np.random.Generator) -> Judge:
    """Atomics of halves, floats (greatest, least) and 64-bit integers"""
    h, f, wide, n = np.zeros(4, np.float16), np.zeros(6, np.float32), np.zeros(2, np.int64), 200
    yield launch("half_atomics", h, f, wide, n, grid=2)
    i = np.arange(n)
    assert h.tolist() == [0.5 * (i % 4 == k).sum() for k in range(4)]
    greatest = [max(0, i[i % 3 == k].max() - 5) for k in range(3)]
    assert f.tolist() == greatest + [-i[i % 3 == k].max() for k in range(3)]
    assert wide.tolist() == [int(i[i % 2 == k].sum()) << 33 for k in range(2)]


@program(source="flash_forward", slow=True)
def flash_forward(rng: np.random.Generator) -> Judge:
    """Flash attention in the two stages of the tutorial, causal"""
    n, d, heads = 128, 64, 2
    q, k, v = rng.standard_normal((3, heads, n, d)).astype(np.float16)
    o, lse = np.zeros((heads, n, d), np.float16), np.zeros((heads, n), np.float32)
    scale = np.float32(1.44269504 / d**0.5)
    yield launch("flash_forward", q, k, v, o, lse, n, scale, grid=(2, heads))
    s = np.where(np.tri(n) > 0, q.astype(float) @ k.astype(float).transpose(0, 2, 1) * float(scale), -np.inf)
    p = np.exp2(s - s.max(2, keepdims=True))
    assert np.allclose(o, p / p.sum(2, keepdims=True) @ v.astype(float), atol=3e-3)
    want = s.max(2) + np.log2(p.sum(2))
    assert np.allclose(lse[:, 64:], want[:, 64:], atol=1e-3)


@program(source="flash_backward", slow=True)
def flash_backward(rng: np.random.Generator) -> Judge:
    """Gradients of keys and values of attention"""
    n, d, scale = 128, 32, np.float32(0.17)
    q, k, v, do = rng.standard_normal((4, n, d)).astype(np.float16)
    gk, gv = np.zeros((2, n, d), np.float32)
    x, y, z, w = (t.astype(float) for t in (q, k, v, do))
    s = x @ y.T * float(scale)
    lse = np.log(np.exp(s).sum(1))
    p = np.exp(s - lse[:, None])
    delta = (w * (p @ z)).sum(1)
    log2 = (lse * 1.44269504).astype(np.float32)
    yield launch("flash_backward", q, k, v, do, gk, gv, log2, delta.astype(np.float32), n, scale, grid=2)
    assert np.allclose(gv, p.T @ w, atol=2e-2)
    ds = p * (w @ z.T - delta[:, None])
    assert np.allclose(gk, ds.T @ x * float(scale), atol=2e-2)


@program(source="grouped_product", slow=True)
def grouped_product(rng: np.random.Generator) -> Judge:
    """Products of several sizes, their tiles dealt out to persistent programs"""
    sizes, n, k = np.array([40, 0, 64, 17], np.int32), 64, 96
    total = int(sizes.sum())
    a, b = rng.standard_normal((total, k)).astype(np.float16), rng.standard_normal((4, k, n)).astype(np.float16)
    c = np.zeros((total, n), np.float16)
    yield launch("grouped_product", a, b, c, sizes, 4, 8, n, k, grid=3)
    row = 0
    for g, m in enumerate(sizes.tolist()):
        want = a[row : row + m].astype(float) @ b[g].astype(float)
        assert np.allclose(c[row : row + m], want, atol=5e-2)
        row += m
