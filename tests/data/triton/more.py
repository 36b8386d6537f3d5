"""More Triton kernels whose PTX is test data: what tests/support/programs/triton_more.py judges."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def reductions(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Along both axes: least, greatest and where they are, product, exclusive or."""
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    v = tl.load(x + r[:, None] * COLUMNS + c[None, :])
    tl.store(out + r, tl.min(v, 1))
    tl.store(out + ROWS + r, tl.argmin(v, 1))
    tl.store(out + 2 * ROWS + r, tl.reduce(v % 3 - 1, 1, _product))
    tl.store(out + 3 * ROWS + r, tl.xor_sum(v, 1))
    out += 4 * ROWS
    tl.store(out + c, tl.max(v, 0))
    tl.store(out + COLUMNS + c, tl.argmax(v, 0))
    tl.store(out + 2 * COLUMNS + c, tl.sum(v, 0))


@triton.jit
def scans(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums from both ends and products along both axes."""
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = r[:, None] * COLUMNS + c[None, :]
    v = tl.load(x + at)
    n: tl.constexpr = ROWS * COLUMNS
    tl.store(out + at, tl.cumsum(v, 1, reverse=True))
    tl.store(out + n + at, tl.cumsum(v, 0))
    tl.store(out + 2 * n + at, tl.cumprod(v % 3 - 1, 1))


@triton.jit
def sort_down(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), dim=1, descending=True))


@triton.jit
def random_numbers(uniform, normal, whole, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(uniform + i, tl.rand(seed, i))
    tl.store(normal + i, tl.randn(seed, i + 7))
    tl.store(whole + i, tl.randint(seed, i))


@triton.jit
def printing(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.device_print("value ", v)
    tl.device_assert(v >= 0, "negative")


@triton.jit(noinline=True)
def _collatz(x, limit):
    steps = 0
    while x != 1 and steps < limit:
        x = tl.where(x % 2 == 0, x // 2, 3 * x + 1)
        steps += 1
    return steps


@triton.jit
def calls(out, limit):
    """Scalar loops in a function that is not inlined."""
    i = tl.program_id(0)
    tl.store(out + i, _collatz(i + 1, limit))


@triton.jit
def of_libdevice(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.tan(v))
    tl.store(out + n + i, libdevice.atan2(v, 0.5))
    tl.store(out + 2 * n + i, libdevice.pow(tl.abs(v), 1.7))
    tl.store(out + 3 * n + i, libdevice.log1p(tl.abs(v)))
    tl.store(out + 4 * n + i, libdevice.erf(v))
    tl.store(out + 5 * n + i, libdevice.fmod(v * 100, 0.7))


@triton.jit
def assembly(x, y, out, BLOCK: tl.constexpr):
    """Four bytes at a time by inline assembly."""
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    r = tl.inline_asm_elementwise(
        "{.reg .b32 z; mov.b32 z, 0; vabsdiff4.u32.u32.u32 $0, $1, $2, z;}",
        "=r,r,r",
        [a, b],
        dtype=tl.uint8,
        is_pure=True,
        pack=4,
    )
    tl.store(out + i, r)


@triton.jit
def integers(a, b, out, BLOCK: tl.constexpr):
    """64-bit and 8-bit arithmetic: quotients, remainders, shifts, high halves."""
    i = tl.arange(0, BLOCK)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(out + i, x * y)
    tl.store(out + BLOCK + i, x // y)
    tl.store(out + 2 * BLOCK + i, x % y)
    tl.store(out + 3 * BLOCK + i, (x >> 3) ^ (y << 5))
    tl.store(out + 4 * BLOCK + i, tl.umulhi(x.to(tl.uint64), y.to(tl.uint64)).to(tl.int64))
    tl.store(out + 5 * BLOCK + i, (x.to(tl.int8) + y.to(tl.int8)).to(tl.int64))


@triton.jit
def doubles(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y, out_dtype=tl.float64))


@triton.jit
def batched(a, b, c, B: tl.constexpr, M: tl.constexpr):
    """Products of a batch of matrices at once."""
    n, i, j = tl.arange(0, B)[:, None, None] * M * M, tl.arange(0, M)[None, :, None] * M, tl.arange(0, M)[None, None, :]
    tl.store(c + n + i + j, tl.dot(tl.load(a + n + i + j), tl.load(b + n + i + j)))


@triton.jit
def three_products(a, b, c, M: tl.constexpr):
    """A product of floats as three of tf32."""
    i, j = tl.arange(0, M)[:, None] * M, tl.arange(0, M)[None, :]
    tl.store(c + i + j, tl.dot(tl.load(a + i + j), tl.load(b + i + j), input_precision="tf32x3"))


@triton.jit
def descriptor_sum(x, out, rows, columns, BR: tl.constexpr, BC: tl.constexpr):
    """Tiles over the edge through a descriptor: loaded with zeros beyond it, added to memory within it."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BR, BC])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BR, BC])
    r, c = tl.program_id(0) * BR, tl.program_id(1) * BC
    v = source.load([r, c])
    target.atomic_add([r, c], v * 2)
    target.atomic_add([r, c], v)


@triton.jit
def descriptor_cube(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """A descriptor of three dimensions, transposed on the way."""
    source = tl.make_tensor_descriptor(x, [A, B, C], [B * C, C, 1], [A, B, C])
    target = tl.make_tensor_descriptor(out, [B, A, C], [A * C, C, 1], [B, A, C])
    target.store([0, 0, 0], tl.permute(source.load([0, 0, 0]), (1, 0, 2)))


@triton.jit
def half_atomics(h, f, wide, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.atomic_add(h + i % 4, tl.full((BLOCK,), 0.5, tl.float16), mask=m)
    tl.atomic_max(f + i % 3, i.to(tl.float32) - 5, mask=m)
    tl.atomic_min(f + 3 + i % 3, -i.to(tl.float32), mask=m)
    tl.atomic_add(wide + i % 2, i.to(tl.int64) << 33, mask=m)


@triton.jit
def flash_forward(q, k, v, o, lse, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    """Attention in the two stages of the tutorial: blocks below the diagonal, then those that cross it."""
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * length * D
    i, d, j = start + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    Q = tl.load(q + head + i[:, None] * D + d[None, :])
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = start if CAUSAL else length
    for n in tl.range(0, end, BN):
        K = tl.load(k + head + (n + j)[None, :] * D + d[:, None])
        s = tl.dot(Q, K)
        new = tl.maximum(m, tl.max(s, 1) * scale)
        p = tl.math.exp2(s * scale - new[:, None])
        f = tl.math.exp2(m - new)
        total = total * f + tl.sum(p, 1)
        V = tl.load(v + head + (n + j)[:, None] * D + d[None, :])
        acc = tl.dot(p.to(V.dtype), V, acc * f[:, None])
        m = new
    if CAUSAL:
        for n in tl.range(start, start + BM, BN):
            K = tl.load(k + head + (n + j)[None, :] * D + d[:, None])
            s = tl.dot(Q, K) * scale + tl.where(i[:, None] >= (n + j)[None, :], 0, -1.0e6)
            new = tl.maximum(m, tl.max(s, 1))
            p = tl.math.exp2(s - new[:, None])
            f = tl.math.exp2(m - new)
            total = total * f + tl.sum(p, 1)
            V = tl.load(v + head + (n + j)[:, None] * D + d[None, :])
            acc = tl.dot(p.to(V.dtype), V, acc * f[:, None])
            m = new
    tl.store(lse + tl.program_id(1) * length + i, m + tl.math.log2(total))
    tl.store(o + head + i[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty))


@triton.jit
def flash_backward(q, k, v, do, dk, dv, lse, delta, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """dk and dv of a block of keys, over all blocks of queries; not causal."""
    start = tl.program_id(0) * BN
    n, d, i = start + tl.arange(0, BN), tl.arange(0, D), tl.arange(0, BM)
    K, V = tl.load(k + n[:, None] * D + d[None, :]), tl.load(v + n[:, None] * D + d[None, :])
    gk, gv = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for at in range(0, length, BM):
        Qt = tl.load(q + (at + i)[None, :] * D + d[:, None])
        p = tl.math.exp2(tl.dot(K, Qt) * scale * 1.44269504 - tl.load(lse + at + i)[None, :])
        dO = tl.load(do + (at + i)[:, None] * D + d[None, :])
        gv = tl.dot(p.to(tl.float16), dO, gv)
        dp = tl.dot(V, tl.trans(dO))
        ds = p * (dp - tl.load(delta + at + i)[None, :])
        gk = tl.dot(ds.to(tl.float16), tl.trans(Qt), gk)
    tl.store(dk + n[:, None] * D + d[None, :], gk * scale)
    tl.store(dv + n[:, None] * D + d[None, :], gv)


@triton.jit
def grouped_product(a, b, c, sizes, groups, tiles, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of several sizes, tiles dealt out to the programs in turn."""
    tile = tl.program_id(0)
    first, row = 0, 0
    for g in range(groups):
        m = tl.load(sizes + g)
        across = tl.cdiv(n, BN)
        count = tl.cdiv(m, BM) * across
        while tile >= first and tile < first + count:
            t = tile - first
            i = t // across * BM + tl.arange(0, BM)
            j = t % across * BN + tl.arange(0, BN)
            s = tl.arange(0, BK)
            acc = tl.zeros((BM, BN), tl.float32)
            for at in range(0, k, BK):
                x = tl.load(a + (row + i)[:, None] * k + (at + s)[None, :], mask=i[:, None] < m, other=0.0)
                y = tl.load(b + g * k * n + (at + s)[:, None] * n + j[None, :])
                acc = tl.dot(x, y, acc)
            tl.store(c + (row + i)[:, None] * n + j[None, :], acc.to(tl.float16), mask=i[:, None] < m)
            tile += tl.num_programs(0)
        first += count
        row += m
