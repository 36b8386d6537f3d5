"""What the wrappers emit does what their names say: run on the simulator against plain Python."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from warpsmith import Layout, Tile, kernel, ptx, reg, smem
from warpsmith.types import b16, b32, bf16, f32, pred, s32, u32, u64


def lanes(body, count: int = 32, dtype=u32, **arguments):
    """Run a body that returns one value per thread; give back the array of them."""

    @kernel(out_specs=(Tile(count, dtype),), block=(count, 1, 1), grid=(1,), **arguments)
    def run(out):
        (po,) = ptx.global_ptrs(out)
        tid = ptx.special.tid.x()
        ptx.st(dtype, ptx.addr(po, tid * 4), body(tid))
        ptx.ret()

    return run()


@pytest.mark.parametrize("unroll", [1, 2, 3, 4])
def test_kloop_with_a_register(unroll):
    def body(tid):
        count = reg.scalar(u32, 0)
        ptx.kloop(tid, unroll=unroll, body=lambda: ptx.inst.add.u32(count, count, 1))
        return count

    assert lanes(body).tolist() == list(range(32))


@pytest.mark.parametrize(("total", "unroll"), [(0, 1), (1, 1), (2, 4), (4, 4), (7, 3), (8, 4), (9, 2)])
def test_kloop_with_an_int(total, unroll):
    def body(_):
        count = reg.scalar(u32, 0)
        ptx.kloop(total, unroll=unroll, body=lambda: ptx.inst.add.u32(count, count, 1))
        return count

    assert set(lanes(body).tolist()) == {total}


def test_range_over_registers():
    def body(tid):
        total = reg.scalar(s32, 0)
        for k in ptx.range_(tid, 40, 3):
            total += k
        for k in ptx.range_(5, 0, -2):
            total += k
        return total

    assert lanes(body, dtype=s32).tolist() == [sum(range(t, 40, 3)) + 9 for t in range(32)]


def test_if_else_loop_and_predicates():
    def body(tid):
        result = reg.scalar(u32, 100)
        with ptx.if_(tid < 8):
            with ptx.if_(~(tid == 3)):
                result += tid
            with ptx.else_():
                result -= 1
        with ptx.else_():
            left = reg.scalar(u32)
            ptx.inst.mov.u32(left, tid)
            more = reg.scalar(pred)
            with ptx.loop("halve", pred=more):
                left >>= 1
                result += 1
                ptx.inst.setp.ne.u32(more, left, 0)
        return result

    expected = [99 if t == 3 else 100 + t if t < 8 else 100 + t.bit_length() for t in range(32)]
    assert lanes(body).tolist() == expected


def test_pipeline_walks_the_ring():
    def body(_):
        ring = ptx.pipeline(3)
        seen = reg.scalar(u32, 0)
        for _ in range(8):
            stage, phase = ring.advance()
            seen <<= 3
            seen |= stage
            ptx.inst.mad.lo.u32(seen, phase, 4, seen)
        return seen

    want = 0
    for turn in range(8):
        want = want << 3 | turn % 3 | (turn // 3 % 2) << 2
    assert set(lanes(body).tolist()) == {want}


@pytest.mark.parametrize("width", [4, 32])
def test_warp_reductions(width):
    values = np.random.default_rng(0).integers(-50, 50, 32)

    @kernel(in_specs=(Tile(32, s32),), out_specs=(Tile(3, 32, s32),), block=(32, 1, 1), grid=(1,))
    def reduce(a, out):
        pa, po = ptx.global_ptrs(a, out)
        offset = ptx.special.tid.x() * 4
        for i, call in enumerate((ptx.warp.reduce_sum, ptx.warp.reduce_max, ptx.warp.reduce_min)):
            x = reg.scalar(s32)
            ptx.ld(s32, x, ptx.addr(pa, offset))
            call(x, width=width)
            ptx.st(s32, ptx.addr(po + offset, 128 * i), x)
        ptx.ret()

    out = reduce(values.astype(np.int32))
    groups = values.reshape(-1, width)
    for row, want in zip(out, (groups.sum(1), groups.max(1), groups.min(1)), strict=True):
        assert (row.reshape(-1, width) == want[:, None]).all()


@pytest.mark.parametrize("given", ["int", "register", "16-bit register"])
def test_arrive_multicast_reaches_the_ranks_of_the_mask(given):
    @kernel(out_specs=(Tile(4, 32, u32),), cluster=(4, 1, 1), grid=(4,), block=(32, 1, 1))
    def cast(out):
        (po,) = ptx.global_ptrs(out)
        bars = smem.mbarrier(1)
        tid, rank = ptx.special.tid.x(), ptx.sreg("%cluster_ctarank")
        with ptx.if_(tid == 0):
            ptx.mbarrier.init(bars[0], 1)
            ptx.fence.mbarrier_init()
        ptx.cluster.sync()
        with ptx.if_(tid == 0):
            mask = 0b1010 if given == "int" else reg.scalar(u32 if given == "register" else b16, 0b1010)
            ptx.cluster.arrive_multicast(bars[0], mask, pred=rank == 0)
        ptx.mbarrier.wait(bars[0], 0, pred=(rank & 1) == 1)  # a remote arrival lands in its own time
        ptx.cluster.sync()
        done = ptx.mbarrier.try_wait(bars[0], 0)
        value = reg.scalar(u32)
        ptx.selp(u32, value, 1, 0, done)
        ptx.st(u32, ptx.addr(po, (rank * 32 + tid) * 4), value)
        ptx.cluster.sync()
        ptx.ret()

    assert cast().tolist() == [[0] * 32, [1] * 32, [0] * 32, [1] * 32]


def test_remote_arrivals_and_ranks():
    @kernel(out_specs=(Tile(2, 32, u32),), cluster=(2, 1, 1), grid=(2,), block=(32, 1, 1), smem=64)
    def peers(out):
        (po,) = ptx.global_ptrs(out)
        bars = ptx.mbarrier.array(smem.base(), 0, 2)
        tid, rank = ptx.special.tid.x(), ptx.sreg("%cluster_ctarank")
        with ptx.if_(tid == 0):
            bars.init_all(32)
            ptx.fence.mbarrier_init()
        ptx.cluster.sync()
        bars.arrive_remote_all(rank ^ 1)
        bars[0].wait(0)
        bars.at(reg.scalar(u32, 1)).wait(0)
        value = reg.scalar(u32, 7)
        ptx.inst.add.u32(value, value, 1, pred=ptx.cluster.rank(1))
        ptx.st(u32, ptx.addr(po, (rank * 32 + tid) * 4), value)
        ptx.cluster.sync()
        ptx.ret()

    assert peers().tolist() == [[7] * 32, [8] * 32]


@pytest.mark.parametrize("layout", [Layout.TMA_128B, Layout.TMA_64B, Layout.TMA_32B, Layout.ROW])
def test_element_access_agrees_with_the_swizzle_of_tma(layout):
    columns = (layout.span or 128) // 2

    @kernel(
        in_specs=(Tile(16, columns, bf16, layout, tma_box=(16, columns)),), out_specs=(Tile(16, columns, b16),), grid=(1,),
        block=(columns, 1, 1),
    )  # fmt: skip
    def read(A, out):
        (po,) = ptx.global_ptrs(out)
        tile, bar = smem.alloc(bf16, (2, 16, columns), swizzle=layout.swizzle)[1], smem.mbarrier(1)[0]
        tid = ptx.special.tid.x()
        with ptx.if_(tid == 0):
            ptx.mbarrier.init(bar, 1)
            ptx.fence.proxy_async_shared_cta()
            ptx.mbarrier.arrive_expect_tx(bar, 32 * columns)
            ptx.cp.async_.bulk.tensor_2d(dst=tile, src=A.tma_desc(), coord=(0, 0), mbar=bar)
        ptx.bar.sync()
        ptx.mbarrier.wait(bar, 0)
        for row in ptx.range_(0, 16):
            value = tile[row, tid]
            ptx.inst.st.global_.b16(ptx.addr(po, (row * columns + tid) * 2), value)
        ptx.ret()

    a = np.random.default_rng(0).standard_normal((16, columns)).astype(ml_dtypes.bfloat16)
    assert (read(a) == a.view(np.uint16)).all()


def test_static_element_access_agrees_too():
    @kernel(out_specs=(Tile(8, 64, b32),), grid=(1,), block=(32, 1, 1))
    def write(out):
        (po,) = ptx.global_ptrs(out)
        tile = smem.alloc(b32, (8, 32), swizzle="128B")
        tid = ptx.special.tid.x()
        with ptx.if_(tid == 0):
            for row in range(8):
                for column in range(32):
                    tile[row, column] = 100 * row + column
        ptx.bar.sync()
        for row in range(8):
            ptx.st(b32, ptx.addr(po + tid * 4, 256 * row), tile[row, tid])
            ptx.st(b32, ptx.addr(po + tid * 4, 256 * row + 128), tile[row, tid])
        ptx.ret()

    want = np.arange(8)[:, None] * 100 + np.tile(np.arange(32), 2)
    assert (write() == want).all()


def test_the_same_kernel_in_static_and_in_dynamic_memory():
    def build(pad: int):
        @kernel(out_specs=(Tile(32, u32),), grid=(1,), block=(32, 1, 1))
        def rotate(out):
            (po,) = ptx.global_ptrs(out)
            smem.alloc(u32, (pad,))
            ring, bar = smem.alloc(u32, (3, 32)), smem.mbarrier(2)[1]
            tid = ptx.special.tid.x()
            for stage in range(3):
                ring[stage, tid] = tid + 100 * stage
            with ptx.if_(tid == 0):
                ptx.mbarrier.init(bar, 32)
            ptx.bar.sync()
            ptx.mbarrier.arrive(bar)
            ptx.mbarrier.wait(bar, 0)
            middle = ring[reg.scalar(u32, 1)]
            total = ring[0][31 - tid] + middle[tid]
            ptx.st(u32, ptx.addr(po, tid * 4), total + ring[2, 5])
            ptx.ret()

        return rotate

    small, large = build(16), build(20000)
    assert small.build().dynamic_shared == 0
    assert large.build().dynamic_shared > 80000
    want = [(31 - t) + (100 + t) + 205 for t in range(32)]
    assert small().tolist() == large().tolist() == want


def test_stores_of_an_accumulator_transpose_it():
    @kernel(out_specs=(Tile(32, 72, b16),), grid=(1,), block=(128, 1, 1))
    def store(out):
        (po,) = ptx.global_ptrs(out)
        tile = smem.alloc(bf16, (32, 72))
        tid = ptx.special.tid.x()
        acc = reg.array(f32, 16)
        row = (tid >> 5) * 16 + ((tid & 31) >> 2)
        for i, register in enumerate(acc):
            # value = row + 64 * column of the wgmma accumulator, exact in bf16 only for the small ones
            column = (tid & 3) * 2 + (i & 1) + (i >> 2) * 8
            value = row + 8 * (i >> 1 & 1) + column * 2
            ptx.inst.cvt.rn.f32.u32(register, value)
        ptx.stmatrix_x4_trans_f32_bf16(frag=acc, smem_base=tile, lane=tid, row_stride=72)
        ptx.bar.sync()
        with ptx.if_(tid < 64):
            for c in range(32):
                v = reg.scalar(b16)
                ptx.inst.ld.shared.b16(v, ptx.addr(smem_address(tile) + tid * 2, 144 * c))
                ptx.inst.st.global_.b16(ptx.addr(po + tid * 2, 144 * c), v)
        ptx.ret()

    def smem_address(tile):
        base = reg.scalar(u32)
        ptx.inst.mov.u32(base, tile)
        return base

    got = store().view(ml_dtypes.bfloat16).astype(np.float32)[:, :64]
    assert (got == np.arange(64)[None, :] + 2 * np.arange(32)[:, None]).all()


def test_widening_of_pointers_is_by_sign():
    def body(tid):
        wide = reg.scalar(u64, 1 << 33)
        negative = reg.scalar(s32, -1)
        total = wide + negative + tid
        low = reg.scalar(u32)
        ptx.inst.cvt.u32.u64(low, total >> 1)
        return low

    assert lanes(body).tolist() == [(((1 << 33) - 1 + t) >> 1) & 0xFFFFFFFF for t in range(32)]
