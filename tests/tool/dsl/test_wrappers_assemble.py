"""ptxas accepts what every wrapper emits."""

from __future__ import annotations

import itertools

import pytest

from warpsmith import Layout, Tile, kernel, ptx, reg, smem
from warpsmith.types import (
    b1,
    b16,
    b32,
    b64,
    bf16,
    e4m3,
    e5m2,
    f16,
    f32,
    f64,
    pred,
    s8,
    s32,
    tf32,
    u8,
    u16,
    u32,
    u64,
)  # fmt: skip

H = {"arch": "sm_90a", "block": (128, 1, 1)}
BULK = ptx.cp.async_.bulk


def tensor_kernel(rank: int, forms, arch: str = "sm_90a"):
    tile = Tile(*[64] * rank, f32, tma_box=(*[1] * (rank - 1), 32))

    @kernel(in_specs=(tile,), arch=arch, block=(128, 1, 1))
    def tensor(A):
        forms(A, smem.alloc(f32, (1024,)), smem.mbarrier(1)[0], tuple(range(rank)))

    return tensor


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_bulk_tensor_tile_and_store(assemble, rank):
    def forms(A, s, bar, c):
        copy = getattr(BULK, f"tensor_{rank}d")
        x = reg.scalar(s32, 3)
        copy(dst=s, src=A.tma_desc(), coord=c, mbar=bar)
        copy(dst=s, src=A.tma_desc(), coord=(x, *c[1:]), mbar=bar, multicast_mask=3)
        copy(dst=s, src=A.tma_desc(), coord=c, mbar=bar, multicast_mask=reg.scalar(b16, 3))
        copy(dst=s, src=A.tma_desc(), coord=c, mbar=bar, multicast_mask=reg.scalar(u32, 3), pred=x > 0)
        copy.shared_cta_global_tile(dst=s, src=A.tma_desc(), coord=c, mbar=bar)
        copy.store(dst=A.tma_desc(), src=s, coord=c)
        getattr(BULK.tensor, f"tile_{rank}d")(dst=s, src=A.tma_desc(), coord=c, mbar=bar)
        getattr(BULK.tensor, f"store_{rank}d")(dst=A.tma_desc(), src=s, coord=c)
        BULK.commit_group()
        BULK.wait_group(1, read=True)
        BULK.wait_group(0)

    assemble([tensor_kernel(rank, forms)])


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_bulk_tensor_im2col(assemble, rank):
    def forms(A, s, bar, c):
        load = getattr(BULK.tensor, f"im2col_{rank}d")
        load(dst=s, src=A.tma_desc(), coord=c, mbar=bar, offsets=list(range(rank - 2)))
        load(dst=s, src=A.tma_desc(), coord=c, mbar=bar, offsets=reg.array(u16, rank - 2).regs(), multicast_mask=3)
        BULK.tensor.im2col_store(rank, dst=A.tma_desc(), src=s, coord=c)

    assemble([tensor_kernel(rank, forms)])


def test_bulk_tensor_gather_scatter_and_pairs(assemble):
    def forms(A, s, bar, c):
        BULK.tensor.gather4_2d(dst=s, src=A.tma_desc(), coord=(0, 1, 2, 3, 4), mbar=bar)
        BULK.tensor.gather4_2d(dst=s, src=A.tma_desc(), coord=(0, 1, 2, 3, 4), mbar=bar, multicast_mask=3)
        BULK.tensor.gather4_2d(dst=s, src=A.tma_desc(), coord=(0, 1, 2, 3, 4), mbar=bar, cta_group=2)
        BULK.tensor.scatter4_2d(dst=A.tma_desc(), src=s, coord=(0, 1, 2, 3, 4))
        BULK.tensor_2d.shared_cta_global_tile(dst=s, src=A.tma_desc(), coord=c, mbar=bar, cta_group=2)
        BULK.tensor_2d(dst=s, src=A.tma_desc(), coord=c, mbar=bar, cta_group=2, multicast_mask=3)
        ptx.fence.proxy_async_generic_acquire_shared_cluster()

    assemble([tensor_kernel(2, forms, "sm_100a")])


def test_tma_of_the_three_dimensional_view(assemble):
    @kernel(
        in_specs=(Tile(256, 256, bf16, Layout.TMA_128B, tma_box=(64, 64), tma_rank=3),),
        out_specs=(Tile(256, 256, bf16, tma_box=(64, 64), tma_rank=3, tma_padding=True),),
        **H,
    )
    def three(A, C):
        s = smem.alloc(bf16, (72, 72))
        bar = smem.mbarrier(1)[0]
        col = reg.scalar(u32, 64)
        ptx.tma.load_3d(dst=s, src=A.tma_desc(), row=0, col=col, mbar=bar)
        ptx.tma.load_3d(s, A, 0, 64, bar, pred=col > 3)
        ptx.tma.load_3d_multicast(dst=s, src=A.tma_desc(), coords=(0, col, 1), mbar=bar, mask=3, issuer=0)
        ptx.tma.load_3d_multicast(dst=s, src=A.tma_desc(), coords=(0, col, 1), mbar=bar, mask=3, issuer=col == 0)
        ptx.tma.store_3d(dst=C.tma_desc(), src=s, row=0, col=0)

    assemble([three])


WGMMA = [
    (f32, bf16, bf16, 16), (f32, f16, f16, 16), (f16, f16, f16, 16), (f32, tf32, tf32, 8), (s32, s8, s8, 32), (s32, u8, u8, 32),
    (s32, s8, u8, 32), (s32, u8, s8, 32), *[(d, a, b, 32) for d in (f32, f16) for a in (e4m3, e5m2) for b in (e4m3, e5m2)],
    (s32, b1, b1, 256),
]  # fmt: skip


def wgmma_kernel(dtype_d, dtype_a, dtype_b, k, sizes):
    @kernel(**H)
    def multiply():
        da, db = reg.scalar(b64, 0), reg.scalar(b64, 0)
        on = reg.scalar(pred, 1)
        for n in sizes:
            acc = reg.wgmma_frag(n=n, dtype=dtype_d)
            fragment = reg.array(b32, 4)
            types = {"shape": (64, n, k), "dtype_d": dtype_d, "dtype_a": dtype_a, "dtype_b": dtype_b, "d": acc}
            ptx.wgmma.fence()
            ptx.wgmma.mma_async(**types, a=da, b=db)
            ptx.wgmma.mma_async(**types, a=fragment, b=db, scale_d=True)
            ptx.wgmma.mma_async(**types, a=da, b=db, scale_d=on, a_k_offset=32, b_k_offset=64)
            if dtype_a.name in ("bf16", "f16"):
                ptx.wgmma.mma_async(**types, a=da, b=db, scale_a=-1, trans_a=1, trans_b=1)
                ptx.wgmma.mma_async(**types, a=fragment, b=db, scale_b=-1, trans_b=1)
            ptx.wgmma.commit_group()
            ptx.wgmma.wait_group(0)

    return multiply


def test_wgmma_of_every_type_and_shape(assemble):
    every = range(8, 257, 8)
    integer = [n for n in every if n <= 32 or n % 16 == 0]
    kernels = [wgmma_kernel(d, a, b, k, (8, 64, 128, 256)) for d, a, b, k in WGMMA]
    kernels.append(wgmma_kernel(f32, bf16, bf16, 16, every))
    kernels.append(wgmma_kernel(s32, s8, s8, 32, integer))
    assemble(kernels)


def test_wgmma_descriptors(assemble):
    @kernel(**H)
    def descriptors():
        acc = reg.wgmma_frag(n=64, dtype=f32)
        a, b = smem.wgmma_tile(bf16, (64, 64)), smem.wgmma_tile(bf16, (64, 64), "MN")
        base = smem.base()
        for kk in range(4):
            ptx.wgmma.mma_async(
                shape=(64, 64, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=acc, a=a, b=b, scale_d=kk != 0, trans_b=1,
                a_k_offset=32 * kk, b_k_offset=2048 * kk,
            )  # fmt: skip
        ptx.wgmma.auto_descriptor(base, dtype=bf16, shape=(64, 64), major="K")
        ptx.wgmma.auto_descriptor(a, dtype=f32, shape=(32, 64), major="MN")
        ptx.wgmma.make_descriptor(base, leading_byte_offset=16, stride_byte_offset=1024, swizzle=ptx.wgmma.SWIZZLE_128B)
        ptx.wgmma.masked_descriptor(base, byte_offset=-64)

    assemble([descriptors])


def test_ldmatrix_and_stmatrix_in_every_layout(assemble):
    @kernel(arch="sm_100a", block=(128, 1, 1))
    def matrices():
        s = smem.alloc(f16, (64, 64))
        r = reg.array(b32, 4)
        for count, trans in itertools.product((1, 2, 4), (False, True)):
            ptx.ldmatrix(dst=r[:count], src=s, layout=f"x{count}", trans=trans)
            ptx.ldmatrix(dst=r[:count], src=ptx.addr(s, 64), layout=f"m8n8.x{count}" + (".trans" if trans else ""))
            ptx.stmatrix(smem=s, regs=r[:count], layout=f"x{count}", trans=trans)
        ptx.ldmatrix(dst=r[0], src=s, layout="x1")
        for count in (1, 2):
            ptx.ldmatrix(dst=r[: 2 * count], src=s, layout=f"m16n16.x{count}.b8")
            for packed in ("b6x16_p32", "b4x16_p64"):
                ptx.ldmatrix(dst=r[: 2 * count], src=s, layout=f"m16n16.x{count}.b8x16.{packed}")
        for count in (1, 2, 4):
            for packed in ("b6x16_p32", "b4x16_p64"):
                ptx.ldmatrix(dst=r[:count], src=s, layout=f"m8n16.x{count}.b8x16.{packed}")
            ptx.stmatrix(smem=s, regs=r[:count], layout=f"x{count}", shape="m16n8")

    @kernel(arch="sm_80", block=(128, 1, 1))
    def ampere():
        s = smem.alloc(f16, (64, 64))
        ptx.ldmatrix(dst=reg.array(b32, 4), src=s, layout="x4", trans=True)

    assemble([matrices, ampere])


def test_stmatrix_of_an_accumulator(assemble):
    @kernel(**H)
    def store():
        acc = reg.array(f32, 32)
        s = smem.alloc(bf16, (64, 72))
        lane = ptx.special.tid.x() & 127
        ptx.stmatrix_x4_trans_f32_bf16(frag=acc, smem_base=s, lane=lane, row_stride=72)
        ptx.stmatrix_x4_trans_f32_bf16(
            frag=acc.hw_order(reverse=True), smem_base=smem.base(), lane=lane, row_stride=72,
            tmp_bf16=[reg.scalar(b16) for _ in range(8)], tmp_pack=[reg.scalar(b32) for _ in range(4)],
        )  # fmt: skip

    assemble([store])


MMA = [
    ((16, 8, 16), f32, bf16, 4, 2, 4), ((16, 8, 16), f32, f16, 4, 2, 4), ((16, 8, 16), f16, f16, 4, 2, 2), ((16, 8, 8), f32,
    tf32, 4, 2, 4), ((16, 8, 8), f32, bf16, 2, 1, 4), ((16, 8, 32), s32, s8, 4, 2, 4), ((16, 8, 16), s32, u8, 2, 1, 4), ((8,
    8, 4), f64, f64, 1, 1, 2),
]  # fmt: skip


def test_mma_sync(assemble):
    @kernel(arch="sm_80", block=(32, 1, 1))
    def multiply():
        for shape, d, a, na, nb, nd in MMA:
            kind = f64 if a is f64 else b32
            acc = reg.array(b32 if d is f16 else d, nd)
            fa, fb = reg.array(kind, na), reg.array(kind, nb)
            ptx.mma.sync(shape=shape, dtype_d=d, dtype_a=a, dtype_b=a, dtype_c=d, d=acc, a=fa, b=fb, c=acc)

    assemble([multiply])


def test_barriers_and_clusters(assemble):
    @kernel(cluster=(2, 1, 1), **H)
    def barriers():
        bars = smem.mbarrier(4)
        tid = ptx.special.tid.x()
        stage = tid & 3
        p = tid == 0
        array = ptx.mbarrier.array(smem.base(), 64, 4)
        ptx.mbarrier.init(bars[0], 1, pred=p)
        array.init_all(2)
        ptx.fence.mbarrier_init()
        ptx.fence.proxy_async()
        ptx.fence.proxy_async_shared_cta()
        for bar in (bars[1], bars[stage], array[2], array.at(stage), ptx.addr(bars[0], 8)):
            ptx.mbarrier.arrive(bar)
            ptx.mbarrier.arrive(bar, 2)
            state = ptx.mbarrier.arrive_expect_tx(bar, 1024)
            ptx.mbarrier.expect_tx(bar, stage)
            ptx.mbarrier.try_wait(bar, 0)
            ptx.mbarrier.try_wait(bar, state, parity=False)
            ptx.mbarrier.wait(bar, stage)
            ptx.mbarrier.wait(bar, 1, pred=p)
            for scope in ("cta", "cluster"):
                ptx.mbarrier.arrive(bar, 2, scope=scope)
                ptx.mbarrier.try_wait(bar, state, parity=False, scope=scope)
                ptx.mbarrier.wait(bar, 0, scope=scope)
        array[0].arrive(scope="cluster")
        array[0].wait(1, scope="cluster")
        array[0].arrive_remote(1)
        array.arrive_remote_all(stage, 1, pred=p)
        remote = ptx.cluster.map_shared_u32(bars[0], 1)
        ptx.mbarrier.arrive_expect_tx(bars[3], stage, pred=~p)
        ptx.cluster.arrive_remote(bars[0], stage, 2)
        ptx.cluster.arrive_multicast(bars[0], 3)
        ptx.cluster.arrive_multicast(remote, tid, 2, pred=p)
        ptx.cluster.arrive_multicast(bars[0], reg.scalar(u16, 3), pred=~p)
        ptx.cluster.rank(1)
        ptx.cluster.sync()
        ptx.cluster.sync(aligned=True)
        ptx.mbarrier.inval(bars[0])
        ptx.bar.sync()
        ptx.bar.sync(1, 64, pred=p)
        ptx.bar.sync(stage, 64)
        ptx.bar.arrive(stage, 64)
        ptx.named_barrier(stage, count=64).sync()
        ptx.named_barrier(3, count=64).arrive()
        ptx.setmaxnreg(240, inc=True)
        ptx.setmaxnreg_dec(24)
        ptx.setmaxnreg_inc(48)
        ptx.elect_sync(tid, p, 0xFFFFFFFF)

    @kernel(arch="sm_80", block=(128, 1, 1))
    def ampere():
        bar = smem.mbarrier(1)[0]
        ptx.mbarrier.init(bar, 1)
        ptx.mbarrier.arrive(bar)
        ptx.mbarrier.try_wait(bar, 0)
        ptx.mbarrier.wait(bar, 1)
        ptx.mbarrier.inval(bar)

    assemble([barriers, ampere])


def test_copies_arithmetic_and_memory(assemble):
    @kernel(
        in_specs=(Tile(64, f32),), raw_params=[("u32", "n"), ("b8.align64.array128", "blob")], arch="sm_80", block=(128, 1, 1)
    )
    def rest(A):
        (a,) = ptx.global_ptrs(A)
        s = smem.alloc(f32, (16, 16), swizzle="64B")
        n = ptx.param(u32, "n")
        ptx.cvta.param(ptx.param(b64, "blob"))
        ptx.cvta.to_global(a)
        tid = ptx.special.tid.x()
        ptx.cp.async_.cg(s, a, 16)
        ptx.cp.async_.cg(s, ptx.addr(a, 16), src_size=n)
        ptx.cp.async_.ca(ptx.addr(s, 16), a, 4, pred=tid == 0)
        ptx.cp.async_.commit_group()
        ptx.cp.async_.wait_group(0)
        ptx.cp.async_.wait_all()
        x, y = reg.scalar(f32, 1.5), reg.scalar(f32)
        z = reg.scalar(u32)
        wide = reg.scalar(u64)
        ptx.mov(f32, y, x)
        ptx.add(u32, z, n, 1)
        ptx.sub(u32, z, z, n)
        ptx.mul(u32, z, z, 3)
        ptx.mul(u32, wide, z, 3, mode="wide")
        ptx.mul(f32, y, x, 2)
        ptx.mad(u32, z, z, z, 1)
        ptx.mad(z, n, 2)
        ptx.shl(u32, z, z, 2)
        ptx.shr(s32, z, z, 2)
        ptx.and_(u32, z, z, 7)
        ptx.or_(u32, z, z, 8)
        ptx.xor_(u32, z, z, n)
        ptx.not_(u32, z, z)
        p = reg.scalar(pred)
        ptx.setp("lt", f32, p, x, 0)
        ptx.selp(f32, y, 1, x, p)
        ptx.cvt(u32, f32, z, x, rounding="rzi", sat=False)
        ptx.cvt(f32, u32, y, z, rounding="rn", pred=p)
        v = reg.array(f32, 4)
        ptx.ld(f32, v, a, cache="ca")
        ptx.ld(f32, x, ptx.addr(a, tid * 4), pred=p)
        ptx.st(f32, a, v)
        ptx.st(f32, s, 1.0, space="shared")
        for reduce in (ptx.warp.reduce_sum, ptx.warp.reduce_max, ptx.warp.reduce_min):
            reduce(z, width=4)
        ptx.warp.reduce_sum(x)
        smem.store(f32, s, smem.load(f32, ptx.addr(s, 4)))
        s[1, tid & 15] = s[tid & 15, 2]
        s[0, 3] = 1.0
        ptx.pipe(z).add.s32(n, -8192).and_.b32(n, 262016).shr.u32(z, 4)
        ring = ptx.pipeline(3)
        ring.advance()
        ptx.kloop(n, unroll=2, body=lambda: ring.advance())
        ptx.kloop(7, unroll=3, body=lambda: ring.advance())
        ptx.var("local", u32, "scratch", size=4, align=16)
        ptx.inst.st.local.u32(ptx.addr("scratch", 4), z)
        ptx.var("global", u32, "counter", linking="visible")
        ptx.inst.atom.global_.add.u32(z, ptx.addr("counter"), 1)
        ptx.pragma("nounroll")
        ptx.file_(7, "other.py")
        ptx.loc(7, 3)
        ptx.raw("{ .reg .b32 t; add.u32 t, t, 1; } L: bra L2; L2: ret;")
        ptx.inst.fence.proxy.tensormap__generic.release.gpu() if False else ptx.inst.membar.gl()

    assemble([rest])
