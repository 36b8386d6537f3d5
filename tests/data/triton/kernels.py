"""Triton kernels whose PTX is test data; `tests/data/ptx/triton/regenerate.py` compiles them without a GPU."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def row_sum(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * columns + i, mask=i < columns, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(v, axis=0))


@triton.jit
def row_argmax(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * columns + i, mask=i < columns, other=-float("inf"))
    tl.store(out + tl.program_id(0), tl.argmax(v, axis=0))


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    v = tl.load(x + row + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    v = tl.load(x + row + i, mask=i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    d = tl.where(i < columns, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, axis=0) / columns + eps)
    w = tl.load(weight + i, mask=i < columns)
    tl.store(out + row + i, d * scale * w + tl.load(bias + i, mask=i < columns), mask=i < columns)


@triton.jit
def scan_sum(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def histogram(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(v, BINS))


@triton.jit
def atomics(i, f, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = at < n
    tl.atomic_add(f + at % 7, 1.5, mask=m)
    tl.atomic_max(i + at % 5, at, mask=m)
    tl.atomic_xchg(i + 8 + at % 3, at, mask=m)
    tl.atomic_cas(i + 16, 0, 1)
    tl.atomic_or(i + 17 + at % 3, at, mask=m, sem="release", scope="sys")


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns))
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < columns) & (r[None, :] < rows))


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    kk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for at in range(0, k, BK):
        x = tl.load(a + i[:, None] * k + (at + kk)[None, :])
        y = tl.load(b + (at + kk)[:, None] * n + j[None, :])
        acc = tl.dot(x, y, acc, out_dtype=ACC)
    tl.store(c + i[:, None] * n + j[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def matmul_descriptor(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        acc = tl.dot(da.load([tl.program_id(0) * BM, at]), db.load([tl.program_id(1) * BN, at]).T, acc)
    dc.store([tl.program_id(0) * BM, tl.program_id(1) * BN], acc.to(tl.float16))


@triton.jit
def attention(q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    j = tl.arange(0, BN)
    x = tl.load(q + i[:, None] * D + d[None, :], mask=i[:, None] < length, other=0.0)
    m = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for at in range(0, length, BN):
        inside = at + j < length
        y = tl.load(k + (at + j)[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        s = tl.where(inside[None, :], tl.dot(x, y) * scale, -float("inf"))
        new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(m - new)
        total = total * alpha + tl.sum(p, axis=1)
        z = tl.load(v + (at + j)[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(z.dtype), z, acc * alpha[:, None])
        m = new
    tl.store(out + i[:, None] * D + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty), mask=i[:, None] < length)


@triton.jit
def random_dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


@triton.jit
def casts(x, h, b, e4, e5, i8, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(h + i, v.to(tl.float16), mask=i < n)
    tl.store(b + i, v.to(tl.bfloat16), mask=i < n)
    tl.store(e4 + i, v.to(tl.float8e4nv), mask=i < n)
    tl.store(e5 + i, v.to(tl.float8e5), mask=i < n)
    tl.store(i8 + i, v.to(tl.int8), mask=i < n)


@triton.jit
def math(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1.0)
    w = tl.load(y + i, mask=i < n, other=1.0)
    r = tl.sin(v) + tl.cos(w) + tl.log(v) + tl.exp(w) + tl.sqrt(v) + tl.abs(w) + tl.floor(v) + tl.ceil(w) + tl.erf(v)
    r += tl.fma(v, w, r) + tl.div_rn(v, w) + tl.minimum(v, w) + tl.sigmoid(v) + tl.log2(w) + tl.clamp(v, 0.0, 1.0)
    tl.store(out + i, r, mask=i < n)


@triton.jit
def persistent(x, out, n, BLOCK: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0), num_stages=3):
        i = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
