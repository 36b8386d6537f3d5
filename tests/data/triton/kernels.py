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


@triton.jit
def _combine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def recurrence(a, b, out, n, BLOCK: tl.constexpr):
    """h = a h + b along rows, by an associative scan of pairs."""
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    x = tl.load(a + row + i, mask=i < n, other=1.0)
    y = tl.load(b + row + i, mask=i < n, other=0.0)
    _, h = tl.associative_scan((x, y), 0, _combine)
    tl.store(out + row + i, h, mask=i < n)


@triton.jit
def layer_norm_backward(x, dy, w, dx, dw, db, mean, rstd, lock, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """dx of a row, and partial dw, db behind a spin lock per group."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    m, r = tl.load(mean + row), tl.load(rstd + row)
    v = tl.load(x + row * columns + i, mask=mask, other=0).to(tl.float32)
    g = tl.load(dy + row * columns + i, mask=mask, other=0).to(tl.float32)
    k = tl.load(w + i, mask=mask, other=0).to(tl.float32)
    h = tl.where(mask, (v - m) * r, 0.0)
    wg = tl.where(mask, k * g, 0.0)
    c1 = tl.sum(h * wg, axis=0) / columns
    c2 = tl.sum(wg, axis=0) / columns
    tl.store(dx + row * columns + i, (wg - (h * c1 + c2)) * r, mask=mask)
    group = row % GROUP
    lock += group
    count = lock + GROUP
    pw, pb = g * h, g
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    n = tl.load(count)
    if n == 0:
        tl.atomic_xchg(count, 1)
    else:
        pw += tl.load(dw + group * columns + i, mask=mask)
        pb += tl.load(db + group * columns + i, mask=mask)
    tl.store(dw + group * columns + i, pw, mask=mask)
    tl.store(db + group * columns + i, pb, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def split_k(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    s = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK * SPLIT):
        x = tl.load(a + i[:, None] * k + (at + s)[None, :], mask=(at + s)[None, :] < k, other=0.0)
        y = tl.load(b + (at + s)[:, None] * n + j[None, :], mask=(at + s)[:, None] < k, other=0.0)
        acc = tl.dot(x, y, acc)
    tl.atomic_add(c + i[:, None] * n + j[None, :], acc, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def attention_causal(q, k, v, o, lse, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * length * D
    i, d, j = start + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    Q = tl.load(q + head + i[:, None] * D + d[None, :])
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, start + BM, BN):
        K = tl.load(k + head + (n + j)[None, :] * D + d[:, None])
        s = tl.dot(Q, K) * (scale * 1.44269504)
        s = tl.where(i[:, None] >= (n + j)[None, :], s, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        f = tl.exp2(m - new)
        total = total * f + tl.sum(p, 1)
        V = tl.load(v + head + (n + j)[:, None] * D + d[None, :])
        acc = tl.dot(p.to(V.dtype), V, acc * f[:, None])
        m = new
    tl.store(o + head + i[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty))
    tl.store(lse + tl.program_id(1) * length + i, m + tl.log2(total))


@triton.jit
def attention_tma(q, k, v, o, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    dq = tl.make_tensor_descriptor(q, [length, D], [D, 1], [BM, D])
    dk = tl.make_tensor_descriptor(k, [length, D], [D, 1], [BN, D])
    dv = tl.make_tensor_descriptor(v, [length, D], [D, 1], [BN, D])
    do = tl.make_tensor_descriptor(o, [length, D], [D, 1], [BM, D])
    start = tl.program_id(0) * BM
    Q = dq.load([start, 0])
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in tl.range(0, length, BN, num_stages=3):
        K = dk.load([n, 0])
        s = tl.dot(Q, K.T) * (scale * 1.44269504)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        f = tl.exp2(m - new)
        total = total * f + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), dv.load([n, 0]), acc * f[:, None])
        m = new
    do.store([start, 0], (acc / total[:, None]).to(tl.float16))


@triton.jit
def matmul_persistent(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * across, tl.num_programs(0), flatten=not WS, warp_specialize=WS):
        i, j = tile // across * BM, tile % across * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for at in range(0, k, BK):
            acc = tl.dot(da.load([i, at]), db.load([j, at]).T, acc)
        dc.store([i, j], acc.to(c.dtype.element_ty))


@triton.jit
def topk(x, values, out, n, BLOCK: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    best = tl.topk(v, K)
    tl.store(values + tl.program_id(0) * K + tl.arange(0, K), best)
    _, at = tl.max(v, 0, return_indices=True)
    _, where = tl.min(tl.where(i < n, v, float("inf")), 0, return_indices=True)
    tl.store(out + tl.program_id(0) * 4, at)
    tl.store(out + tl.program_id(0) * 4 + 1, where)
    c = tl.cumsum((v > 0).to(tl.int32), 0)
    tl.store(out + tl.program_id(0) * 4 + 2, tl.max(c, 0))
    tl.store(out + tl.program_id(0) * 4 + 3, tl.xor_sum(tl.where(i < n, v.to(tl.int32, bitcast=True), 0), 0))


@triton.jit
def gather_flip(x, index, out, BLOCK: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, BLOCK), tl.arange(0, N)
    v = tl.load(x + r[:, None] * N + c[None, :])
    k = tl.load(index + r[:, None] * N + c[None, :])
    g = tl.gather(v, k, 1)
    g = tl.flip(g, 1)
    a, b = tl.split(tl.reshape(g, (BLOCK, N // 2, 2)))
    j = tl.join(b, a)
    tl.store(out + r[:, None] * N + c[None, :], tl.reshape(j, (BLOCK, N)))


@triton.jit
def cross_entropy(logits, target, loss, grad, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    t = tl.load(target + row)
    m, total = -float("inf"), 0.0
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(logits + row * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(v, 0))
        total = total * tl.exp(m - new) + tl.sum(tl.exp(v - new), 0)
        m = new
    tl.store(loss + row, m + tl.log(total) - tl.load(logits + row * n + t).to(tl.float32))
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(logits + row * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
        g = tl.exp(v - m) / total - (i == t).to(tl.float32)
        tl.store(grad + row * n + i, g.to(grad.dtype.element_ty), mask=i < n)


@triton.jit
def scaled_int8(a, sa, b, sb, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    s = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for at in range(0, k, BK):
        x = tl.load(a + i[:, None] * k + (at + s)[None, :])
        y = tl.load(b + j[None, :] * k + (at + s)[:, None])
        acc = tl.dot(x, y, acc)
    r = acc.to(tl.float32) * tl.load(sa + i)[:, None] * tl.load(sb + j)[None, :]
    tl.store(c + i[:, None] * n + j[None, :], r.to(tl.bfloat16))
