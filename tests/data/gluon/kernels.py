"""Gluon kernels whose PTX is test data: what tests/support/programs/gluon_kernels.py judges."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    cluster,
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def pipelined_sum(a, b, out, columns, BUFFERS: gl.constexpr, BLOCK: gl.constexpr):
    """Rows added through a ring of buffers that cp.async fills"""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    ring_a = gl.allocate_shared_memory(gl.float32, [BUFFERS, BLOCK], shared)
    ring_b = gl.allocate_shared_memory(gl.float32, [BUFFERS, BLOCK], shared)
    row = gl.program_id(0) * columns
    lane = gl.arange(0, BLOCK, layout)
    steps = gl.cdiv(columns, BLOCK)
    for i in gl.static_range(BUFFERS - 1):
        at = i * BLOCK + lane
        async_copy.async_load(ring_a.index(i), a + row + at, at < columns)
        async_copy.async_load(ring_b.index(i), b + row + at, at < columns)
        async_copy.commit_group()
    for i in range(steps):
        ahead = i + BUFFERS - 1
        at = ahead * BLOCK + lane
        async_copy.async_load(ring_a.index(ahead % BUFFERS), a + row + at, at < columns)
        async_copy.async_load(ring_b.index(ahead % BUFFERS), b + row + at, at < columns)
        async_copy.commit_group()
        async_copy.wait_group(BUFFERS - 1)
        now = i * BLOCK + lane
        gl.store(
            out + row + now, ring_a.index(i % BUFFERS).load(layout) + ring_b.index(i % BUFFERS).load(layout), now < columns
        )
    async_copy.wait_group(0)


@gluon.jit
def product_of_warps(a, b, c, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr):
    """A product by mma.sync of tiles that cp.async brings"""
    load: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    sa: gl.constexpr = gl.SwizzledSharedLayout(8, 2, 4, [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    right: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    tiles_a = gl.allocate_shared_memory(gl.float16, [STAGES, BM, BK], sa)
    tiles_b = gl.allocate_shared_memory(gl.float16, [STAGES, BK, BN], sa)
    m = gl.program_id(0) * BM + gl.arange(0, BM, gl.SliceLayout(1, load))
    ka = gl.arange(0, BK, gl.SliceLayout(0, load))
    kb = gl.arange(0, BK, gl.SliceLayout(1, load))
    n = gl.program_id(1) * BN + gl.arange(0, BN, gl.SliceLayout(0, load))
    pa = a + m[:, None] * K + ka[None, :]
    pb = b + kb[:, None] * N + n[None, :]
    steps = gl.cdiv(K, BK)
    for i in gl.static_range(STAGES - 1):
        async_copy.async_load(tiles_a.index(i), pa + i * BK, (m[:, None] < M) & ((i * BK + ka)[None, :] < K))
        async_copy.async_load(tiles_b.index(i), pb + i * BK * N, ((i * BK + kb)[:, None] < K) & (n[None, :] < N))
        async_copy.commit_group()
    acc = gl.zeros([BM, BN], gl.float32, mma)
    for i in range(steps):
        async_copy.wait_group(STAGES - 2)
        x = tiles_a.index(i % STAGES).load(left)
        y = tiles_b.index(i % STAGES).load(right)
        acc = mma_v2(x, y, acc)
        j = i + STAGES - 1
        async_copy.async_load(tiles_a.index(j % STAGES), pa + j * BK, (m[:, None] < M) & ((j * BK + ka)[None, :] < K))
        async_copy.async_load(tiles_b.index(j % STAGES), pb + j * BK * N, ((j * BK + kb)[:, None] < K) & (n[None, :] < N))
        async_copy.commit_group()
    async_copy.wait_group(0)
    out = gl.convert_layout(acc.to(gl.float16), load)
    gl.store(c + m[:, None] * N + n[None, :], out, (m[:, None] < M) & (n[None, :] < N))


@gluon.jit
def product_of_warpgroups(a, b, c, STAGES: gl.constexpr, num_warps: gl.constexpr):
    """A product by wgmma, operands by tensor copies, one product in flight"""
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    BK: gl.constexpr = a.block_type.shape[1]
    K = a.shape[1]
    tiles_a = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    tiles_b = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    full = mbarrier.allocate_mbarrier(STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared()
    m = gl.program_id(0) * BM
    n = gl.program_id(1) * BN
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, mma)
    steps = gl.cdiv(K, BK)
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(full.index(i), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [m, i * BK], full.index(i), tiles_a.index(i))
        tma.async_load(b, [i * BK, n], full.index(i), tiles_b.index(i))
    for i in range(steps):
        s = i % STAGES
        mbarrier.wait(full.index(s), (i // STAGES) & 1)
        acc = warpgroup_mma(tiles_a.index(s), tiles_b.index(s), acc, is_async=True)
        acc = warpgroup_mma_wait(1, deps=(acc,))
        if i > 0:
            j = i + STAGES - 2
            if j < steps:
                t = j % STAGES
                mbarrier.expect(full.index(t), a.block_type.nbytes + b.block_type.nbytes)
                tma.async_load(a, [m, j * BK], full.index(t), tiles_a.index(t))
                tma.async_load(b, [j * BK, n], full.index(t), tiles_b.index(t))
    acc = warpgroup_mma_wait(0, deps=(acc,))
    for i in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(i))
    tile = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    tile.store(acc.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [m, n], tile)
    tma.store_wait(0)


@gluon.jit
def _load(a, b, c, tiles_a, tiles_b, empty, full, tiles_m, tiles_n):
    STAGES: gl.constexpr = tiles_a.type.shape[0]
    BM: gl.constexpr = a.block_type.shape[0]
    BK: gl.constexpr = a.block_type.shape[1]
    BN: gl.constexpr = b.block_type.shape[1]
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        m = tile // tiles_n * BM
        n = tile % tiles_n * BN
        for k in range(0, a.shape[1], BK):
            s = step % STAGES
            mbarrier.wait(empty.index(s), (step // STAGES & 1) ^ 1)
            mbarrier.expect(full.index(s), a.block_type.nbytes + b.block_type.nbytes)
            tma.async_load(a, [m, k], full.index(s), tiles_a.index(s))
            tma.async_load(b, [k, n], full.index(s), tiles_b.index(s))
            step += 1


@gluon.jit
def _multiply(a, b, c, tiles_a, tiles_b, out, empty, full, free, ready, tiles_m, tiles_n, num_warps: gl.constexpr):
    STAGES: gl.constexpr = tiles_a.type.shape[0]
    BM: gl.constexpr = a.block_type.shape[0]
    BK: gl.constexpr = a.block_type.shape[1]
    BN: gl.constexpr = b.block_type.shape[1]
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, BN, 16])
    step = 0
    done = 0
    for _tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        acc = gl.zeros((BM, BN), gl.float32, mma)
        for _k in range(0, a.shape[1], BK):
            s = step % STAGES
            mbarrier.wait(full.index(s), step // STAGES & 1)
            acc = warpgroup_mma(tiles_a.index(s), tiles_b.index(s), acc)
            mbarrier.arrive(empty.index(s), count=1)
            step += 1
        mbarrier.wait(free.index(0), (done & 1) ^ 1)
        out.store(acc.to(c.dtype))
        fence_async_shared()
        mbarrier.arrive(ready.index(0), count=1)
        done += 1  # noqa: SIM113  # Gluon has no enumerate


@gluon.jit
def _store(a, b, c, out, free, ready, tiles_m, tiles_n):
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    done = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        mbarrier.wait(ready.index(0), done & 1)
        tma.async_store(c, [tile // tiles_n * BM, tile % tiles_n * BN], out)
        tma.store_wait(0)
        mbarrier.arrive(free.index(0), count=1)
        done += 1  # noqa: SIM113


@gluon.jit
def specialised_product(a, b, c, tiles_m, tiles_n, STAGES: gl.constexpr, num_warps: gl.constexpr):
    """A persistent product: one warp loads, a warpgroup multiplies, one warp stores"""
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    BK: gl.constexpr = a.block_type.shape[1]
    tiles_a = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    tiles_b = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    empty = mbarrier.allocate_mbarrier(STAGES)
    full = mbarrier.allocate_mbarrier(STAGES)
    free = mbarrier.allocate_mbarrier(1)
    ready = mbarrier.allocate_mbarrier(1)
    for i in gl.static_range(STAGES):
        mbarrier.init(empty.index(i), count=1)
        mbarrier.init(full.index(i), count=1)
    mbarrier.init(free.index(0), count=1)
    mbarrier.init(ready.index(0), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_multiply, (a, b, c, tiles_a, tiles_b, out, empty, full, free, ready, tiles_m, tiles_n, num_warps)),
            (_load, (a, b, c, tiles_a, tiles_b, empty, full, tiles_m, tiles_n)),
            (_store, (a, b, c, out, free, ready, tiles_m, tiles_n)),
        ],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def _keys(q, k, v, out, tile_q, tiles_k, tiles_v, got_q, empty, full_k, full_v, length):
    STAGES: gl.constexpr = tiles_k.type.shape[0]
    BM: gl.constexpr = q.block_type.shape[0]
    BN: gl.constexpr = k.block_type.shape[0]
    head = gl.program_id(1) * length
    mbarrier.expect(got_q.index(0), q.block_type.nbytes)
    tma.async_load(q, [head + gl.program_id(0) * BM, 0], got_q.index(0), tile_q)
    for i in range(length // BN):
        s = i % STAGES
        mbarrier.wait(empty.index(s), (i // STAGES & 1) ^ 1)
        mbarrier.expect(full_k.index(s), k.block_type.nbytes)
        tma.async_load(k, [head + i * BN, 0], full_k.index(s), tiles_k.index(s))
        mbarrier.expect(full_v.index(s), v.block_type.nbytes)
        tma.async_load(v, [head + i * BN, 0], full_v.index(s), tiles_v.index(s))


@gluon.jit
def _attend(q, k, v, out, tile_q, tiles_k, tiles_v, got_q, empty, full_k, full_v, length, scale, num_warps: gl.constexpr):
    STAGES: gl.constexpr = tiles_k.type.shape[0]
    BM: gl.constexpr = q.block_type.shape[0]
    BN: gl.constexpr = k.block_type.shape[0]
    D: gl.constexpr = q.block_type.shape[1]
    head = gl.program_id(1) * length
    s_layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, BN, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)
    rows: gl.constexpr = gl.SliceLayout(1, s_layout)
    rows_o: gl.constexpr = gl.SliceLayout(1, o_layout)
    most = gl.full([BM], float("-inf"), gl.float32, rows)
    total = gl.full([BM], 0.0, gl.float32, rows)
    acc = gl.zeros((BM, D), gl.float32, o_layout)
    mbarrier.wait(got_q.index(0), 0)
    for i in range(length // BN):
        s = i % STAGES
        mbarrier.wait(full_k.index(s), i // STAGES & 1)
        scores = warpgroup_mma(
            tile_q, tiles_k.index(s).permute((1, 0)), gl.zeros((BM, BN), gl.float32, s_layout), use_acc=False
        )
        scores = scores * scale
        new = gl.maximum(most, gl.max(scores, 1))
        p = gl.exp2(scores - new[:, None])
        shrink = gl.exp2(most - new)
        total = total * shrink + gl.sum(p, 1)
        most = new
        acc = acc * gl.convert_layout(shrink, rows_o)[:, None]
        mbarrier.wait(full_v.index(s), i // STAGES & 1)
        acc = warpgroup_mma(gl.convert_layout(p.to(gl.float16), p_layout), tiles_v.index(s), acc)
        mbarrier.arrive(empty.index(s), count=1)
    acc = acc / gl.convert_layout(total, rows_o)[:, None]
    tile = gl.allocate_shared_memory(out.dtype, [BM, D], out.layout)
    tile.store(acc.to(out.dtype))
    fence_async_shared()
    tma.async_store(out, [head + gl.program_id(0) * BM, 0], tile)
    tma.store_wait(0)


@gluon.jit
def specialised_attention(q, k, v, out, length, scale, STAGES: gl.constexpr, num_warps: gl.constexpr):
    """Attention: one warp loads keys and values, a warpgroup attends, probabilities in registers"""
    BM: gl.constexpr = q.block_type.shape[0]
    BN: gl.constexpr = k.block_type.shape[0]
    D: gl.constexpr = q.block_type.shape[1]
    tile_q = gl.allocate_shared_memory(q.dtype, [BM, D], q.layout)
    tiles_k = gl.allocate_shared_memory(k.dtype, [STAGES, BN, D], k.layout)
    tiles_v = gl.allocate_shared_memory(v.dtype, [STAGES, BN, D], v.layout)
    got_q = mbarrier.allocate_mbarrier(1)
    empty = mbarrier.allocate_mbarrier(STAGES)
    full_k = mbarrier.allocate_mbarrier(STAGES)
    full_v = mbarrier.allocate_mbarrier(STAGES)
    mbarrier.init(got_q.index(0), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(empty.index(i), count=1)
        mbarrier.init(full_k.index(i), count=1)
        mbarrier.init(full_v.index(i), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_attend, (q, k, v, out, tile_q, tiles_k, tiles_v, got_q, empty, full_k, full_v, length, scale, num_warps)),
            (_keys, (q, k, v, out, tile_q, tiles_k, tiles_v, got_q, empty, full_k, full_v, length)),
        ],
        [1],
        [24],
    )


@gluon.jit
def shuffled(x, index, out, counts, N: gl.constexpr):
    """Shared memory by index: gather, scatter, atomic additions; changes of layout; a histogram; scans"""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    wide: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, N, layout)
    shared = gl.allocate_shared_memory(gl.int32, [N], gl.SwizzledSharedLayout(1, 1, 1, [0]), gl.load(x + i))
    at = gl.load(index + i)
    gathered = shared.gather(at, 0)
    gl.store(out + i, gathered)
    gl.barrier()
    shared.scatter(i * 3, at, 0)
    gl.barrier()
    gl.store(out + N + i, shared.load(layout))
    gl.barrier()
    shared.store(gl.full([N], 0, gl.int32, layout))
    gl.barrier()
    shared.atomic_scatter_add(gl.full([N], 1, gl.int32, layout), at % 7, 0)
    gl.barrier()
    gl.store(out + 2 * N + i, shared.load(layout))
    other = gl.convert_layout(gathered, wide)
    j = gl.arange(0, N, wide)
    gl.store(out + 3 * N + j, gl.associative_scan(other, 0, _plus))
    bins: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    gl.store(counts + gl.arange(0, 32, bins), gl.histogram(at % 32, 32, layout=bins))


@gluon.jit
def _plus(a, b):
    return a + b


@gluon.jit
def tensor_sums(x, out, BLOCK: gl.constexpr):
    """Reductions by tensor copies into what several blocks share"""
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    fence_async_shared()
    tile = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
    mbarrier.expect(bar, x.block_type.nbytes)
    tma.async_load(x, [gl.program_id(0) * BLOCK, 0], bar, tile)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    tma.async_atomic_add(out, [0, 0], tile)
    tma.store_wait(0)


@gluon.jit
def tensor_sum(a, b, c, rows, STAGES: gl.constexpr):
    """Tiles added: tensor copies in and out, two buffers of results"""
    BR: gl.constexpr = a.block_type.shape[0]
    BC: gl.constexpr = a.block_type.shape[1]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    ta = gl.allocate_shared_memory(a.dtype, [STAGES, BR, BC], a.layout)
    tb = gl.allocate_shared_memory(a.dtype, [STAGES, BR, BC], a.layout)
    tc = gl.allocate_shared_memory(a.dtype, [2, BR, BC], a.layout)
    bars = mbarrier.allocate_mbarrier(STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(bars.index(i), count=1)
    fence_async_shared()
    column = gl.program_id(0) * BC
    steps = gl.cdiv(rows, BR)
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(bars.index(i), 2 * a.block_type.nbytes)
        tma.async_load(a, [i * BR, column], bars.index(i), ta.index(i))
        tma.async_load(b, [i * BR, column], bars.index(i), tb.index(i))
    for i in range(steps):
        j = i + STAGES - 1
        if j < steps:
            fence_async_shared()
            gl.barrier()
            mbarrier.expect(bars.index(j % STAGES), 2 * a.block_type.nbytes)
            tma.async_load(a, [j * BR, column], bars.index(j % STAGES), ta.index(j % STAGES))
            tma.async_load(b, [j * BR, column], bars.index(j % STAGES), tb.index(j % STAGES))
        mbarrier.wait(bars.index(i % STAGES), i // STAGES & 1)
        total = ta.index(i % STAGES).load(layout) + tb.index(i % STAGES).load(layout)
        tma.store_wait(1)
        tc.index(i % 2).store(total)
        fence_async_shared()
        tma.async_store(c, [i * BR, column], tc.index(i % 2))
    tma.store_wait(0)


@gluon.jit
def cluster_transpose(x, out, B: gl.constexpr):
    """A tile that two CTAs share, by columns and then by rows: it goes through the other's shared memory"""
    a: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 1]])
    b: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1], cga_layout=[[1, 0]])
    r = gl.arange(0, B, gl.SliceLayout(1, a))
    c = gl.arange(0, B, gl.SliceLayout(0, a))
    v = gl.load(x + r[:, None] * B + c[None, :])
    gl.store(out + B * B + r, gl.sum(v, 1))
    v = gl.convert_layout(v, b)
    r = gl.arange(0, B, gl.SliceLayout(1, b))
    c = gl.arange(0, B, gl.SliceLayout(0, b))
    gl.store(out + c[None, :] * B + r[:, None], v)


@gluon.jit
def shared_tile(x, out, BR: gl.constexpr, BC: gl.constexpr):
    """A tile that one tensor copy brings to both CTAs of a cluster"""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 0]])
    tile = gl.allocate_shared_memory(x.dtype, [BR, BC], x.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    cluster.barrier()
    mbarrier.expect(bar, x.nbytes_per_cta)
    tma.async_load(x, [gl.program_id(0) * BR, 0], bar, tile, multicast=True)
    mbarrier.wait(bar, 0)
    v = tile.load(layout)
    cluster.barrier()
    mbarrier.invalidate(bar)
    r = gl.arange(0, BR, gl.SliceLayout(1, layout)) + gl.program_id(0) * BR
    c = gl.arange(0, BC, gl.SliceLayout(0, layout))
    gl.store(out + r[:, None] * BC + c[None, :], v * 2)


@gluon.jit
def _multiply_there(a, b, tiles_a, tiles_b, acc, empty, full, free, ready, tiles_m, tiles_n):
    STAGES: gl.constexpr = tiles_a.type.shape[0]
    BK: gl.constexpr = a.block_type.shape[1]
    step = 0
    done = 0
    for _tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        d = done % 2
        mbarrier.wait(free.index(d), (done // 2 & 1) ^ 1)
        more = False
        for _k in range(0, a.shape[1], BK):
            s = step % STAGES
            mbarrier.wait(full.index(s), step // STAGES & 1)
            tcgen05_mma(tiles_a.index(s), tiles_b.index(s), acc.index(d), use_acc=more, mbarriers=[empty.index(s)])
            more = True
            step += 1
        tcgen05_commit(ready.index(d))
        done += 1  # noqa: SIM113


@gluon.jit
def _take_out(c, acc, free, ready, tiles_m, tiles_n):
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    done = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        d = done % 2
        mbarrier.wait(ready.index(d), done // 2 & 1)
        x = acc.index(d).load()
        mbarrier.arrive(free.index(d), count=1)
        tma.store_wait(0)
        out.store(x.to(c.dtype))
        fence_async_shared()
        tma.async_store(c, [tile // tiles_n * BM, tile % tiles_n * BN], out)
        done += 1  # noqa: SIM113
    tma.store_wait(0)


@gluon.jit
def tensor_memory_product(a, b, c, tiles_m, tiles_n, STAGES: gl.constexpr):
    """A persistent product by tcgen05: two accumulators in tensor memory, one warp loads, one multiplies, four take out"""
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    BK: gl.constexpr = a.block_type.shape[1]
    tiles_a = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    tiles_b = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    acc = allocate_tensor_memory(gl.float32, [2, BM, BN], TensorMemoryLayout([BM, BN], col_stride=1))
    empty = mbarrier.allocate_mbarrier(STAGES)
    full = mbarrier.allocate_mbarrier(STAGES)
    free = mbarrier.allocate_mbarrier(2)
    ready = mbarrier.allocate_mbarrier(2)
    for i in gl.static_range(STAGES):
        mbarrier.init(empty.index(i), count=1)
        mbarrier.init(full.index(i), count=1)
    for i in gl.static_range(2):
        mbarrier.init(free.index(i), count=1)
        mbarrier.init(ready.index(i), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_take_out, (c, acc, free, ready, tiles_m, tiles_n)),
            (_load, (a, b, c, tiles_a, tiles_b, empty, full, tiles_m, tiles_n)),
            (_multiply_there, (a, b, tiles_a, tiles_b, acc, empty, full, free, ready, tiles_m, tiles_n)),
        ],
        [1, 1],
        [24, 24],
    )
