"""wgmma over tiles that TMA writes: layouts, majors, k offsets, types, A in registers; simulated against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from warpsmith import Layout, Tile, kernel, ptx, reg, smem
from warpsmith.types import b32, bf16, e4m3, f16, f32, s8, s32, tf32, u32

M, N = 64, 64
NUMPY = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn, "s8": np.int8,
}  # fmt: skip


def operand(rows, columns, dtype):
    """The tile of a (rows, columns) row-major operand, loaded in stripes of at most 128 bytes."""
    width = min(128, columns * dtype.bits // 8)
    layout = {128: Layout.TMA_128B, 64: Layout.TMA_64B, 32: Layout.TMA_32B, 16: Layout.ROW}[width]
    return Tile(rows, columns, dtype, layout, tma_box=(rows, width * 8 // dtype.bits))


def load(tile, tensor, bar):
    """Load every stripe of a tile."""
    rows, width = tensor.tile.tma_box
    for stripe in range(tensor.tile.dims[1] // width):
        where = ptx.addr(tile, stripe * rows * width * tensor.dtype.bits // 8)
        ptx.cp.async_.bulk.tensor_2d(dst=where, src=tensor.tma_desc(), coord=(stripe * width, 0), mbar=bar)


def k_offset(major, step, k, rows, columns, dtype):
    """Bytes from the tile's start to its K-step."""
    size = dtype.bits // 8
    if major == "K":
        at = step * k * size
        return at // 128 * rows * 128 + at % 128 if columns * size >= 128 else at
    return step * k * min(128, columns * size)


def matmul(dtype, out, tile_k, a_major, b_major, n=N):
    k = 256 // dtype.bits
    a_shape = (M, tile_k) if a_major == "K" else (tile_k, M)
    b_shape = (n, tile_k) if b_major == "K" else (tile_k, n)

    @kernel(
        in_specs=(operand(*a_shape, dtype), operand(*b_shape, dtype)),
        out_specs=(Tile(M, n, out),),
        grid=(1,),
        block=(128, 1, 1),
    )
    def multiply(A, B, C):
        a, b = smem.wgmma_tile(dtype, a_shape, a_major), smem.wgmma_tile(dtype, b_shape, b_major)
        bar, tid = smem.mbarrier(1)[0], ptx.special.tid.x()
        with ptx.if_(tid == 0):
            ptx.mbarrier.init(bar, 1)
            ptx.fence.proxy_async_shared_cta()
            ptx.mbarrier.arrive_expect_tx(bar, a.nbytes + b.nbytes)
            load(a, A, bar)
            load(b, B, bar)
        ptx.bar.sync()
        ptx.mbarrier.wait(bar, 0)
        acc = reg.wgmma_frag(n=n, dtype=out)
        ptx.wgmma.fence()
        for step in range(tile_k // k):
            ptx.wgmma.mma_async(
                shape=(64, n, k), dtype_d=out, dtype_a=dtype, dtype_b=dtype, d=acc, a=a, b=b, scale_d=step > 0,
                trans_a=a_major == "MN", trans_b=b_major == "MN",
                a_k_offset=k_offset(a_major, step, k, *a_shape, dtype), b_k_offset=k_offset(b_major, step, k, *b_shape, dtype),
            )  # fmt: skip
        ptx.wgmma.commit_group()
        ptx.wgmma.wait_group(0)
        store(C, acc, tid, n, out)
        ptx.ret()

    return multiply


def store(C, acc, tid, n, out):
    (pc,) = ptx.global_ptrs(C)
    row = ((tid >> 5) << 4) + ((tid & 31) >> 2)
    column = (tid & 3) << 1
    for i, register in enumerate(acc):
        where = (row + 8 * (i >> 1 & 1)) * n + column + ((i >> 2) * 8 + (i & 1))
        ptx.st(out, ptx.addr(pc + where * 4), register)


def values(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    if dtype.name == "s8":
        return rng.integers(-100, 100, shape).astype(np.int8)
    return (rng.integers(-8, 8, shape) / 4).astype(NUMPY[dtype.name])  # exact in every type


def check(dtype, out, tile_k, a_major="K", b_major="K", n=N):
    run = matmul(dtype, out, tile_k, a_major, b_major, n)
    a = values((M, tile_k) if a_major == "K" else (tile_k, M), dtype, 1)
    b = values((n, tile_k) if b_major == "K" else (tile_k, n), dtype, 2)
    wide = np.int64 if out is s32 else np.float64
    left = a.astype(wide) if a_major == "K" else a.astype(wide).T
    right = b.astype(wide).T if b_major == "K" else b.astype(wide)
    assert (run(a, b) == left @ right).all()


@pytest.mark.parametrize("tile_k", [16, 32, 64, 128])
def test_k_major_tiles_of_every_width(tile_k):
    check(bf16, f32, tile_k)


@pytest.mark.parametrize(("a_major", "b_major"), [("K", "MN"), ("MN", "K"), ("MN", "MN")])
def test_majors(a_major, b_major):
    check(f16, f32, 64, a_major, b_major)


@pytest.mark.parametrize("n", [8, 16, 32, 128])
def test_mn_major_tiles_of_every_width(n):
    check(bf16, f32, 32, "K", "MN", n)


@pytest.mark.parametrize(
    ("dtype", "out", "tile_k"), [(tf32, f32, 32), (tf32, f32, 8), (e4m3, f32, 128), (e4m3, f32, 32), (s8, s32, 64)]
)
def test_types(dtype, out, tile_k):
    check(dtype, out, tile_k)


def test_a_in_registers():
    @kernel(in_specs=(Tile(M, 16, bf16), operand(16, N, bf16)), out_specs=(Tile(M, N, f32),), grid=(1,), block=(128, 1, 1))
    def multiply(A, B, C):
        b, bar, tid = smem.wgmma_tile(bf16, (16, N), "MN"), smem.mbarrier(1)[0], ptx.special.tid.x()
        with ptx.if_(tid == 0):
            ptx.mbarrier.init(bar, 1)
            ptx.fence.proxy_async_shared_cta()
            ptx.mbarrier.arrive_expect_tx(bar, b.nbytes)
            load(b, B, bar)
        (pa,) = ptx.global_ptrs(A)
        fragment = reg.array(b32, 4)
        row = ((tid >> 5) << 4) + ((tid & 31) >> 2)
        for i, register in enumerate(fragment):
            element = (row + 8 * (i & 1)) * 16 + ((tid & 3) << 1) + 8 * (i >> 1)
            ptx.ld(b32, register, ptx.addr(pa + element * 2))
        ptx.bar.sync()
        ptx.mbarrier.wait(bar, 0)
        acc = reg.wgmma_frag(n=N, dtype=f32)
        ptx.wgmma.fence()
        ptx.wgmma.mma_async(
            shape=(64, N, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=acc, a=fragment, b=b, trans_b=1, scale_b=-1
        )
        ptx.wgmma.commit_group()
        ptx.wgmma.wait_group(0)
        store(C, acc, tid, N, f32)
        ptx.ret()

    a, b = values((M, 16), bf16, 1), values((16, N), bf16, 2)
    assert (multiply(a, b) == -(a.astype(np.float64) @ b.astype(np.float64))).all()


def test_a_runtime_scale_d():
    @kernel(in_specs=(operand(M, 16, f16), operand(N, 16, f16)), out_specs=(Tile(M, N, f32),), grid=(1,), block=(128, 1, 1))
    def twice(A, B, C):
        a, b = smem.wgmma_tile(f16, (M, 16)), smem.wgmma_tile(f16, (N, 16))
        bar, tid = smem.mbarrier(1)[0], ptx.special.tid.x()
        with ptx.if_(tid == 0):
            ptx.mbarrier.init(bar, 1)
            ptx.fence.proxy_async_shared_cta()
            ptx.mbarrier.arrive_expect_tx(bar, a.nbytes + b.nbytes)
            load(a, A, bar)
            load(b, B, bar)
        ptx.bar.sync()
        ptx.mbarrier.wait(bar, 0)
        acc = reg.wgmma_frag(n=N, dtype=f32)
        turn = reg.scalar(u32, 0)
        more = turn != 1
        with ptx.loop("again", pred=more):
            ptx.wgmma.fence()
            ptx.wgmma.mma_async(shape=(64, N, 16), dtype_d=f32, dtype_a=f16, dtype_b=f16, d=acc, a=a, b=b, scale_d=turn != 0)
            ptx.wgmma.commit_group()
            ptx.wgmma.wait_group(0)
            turn += 1
            ptx.inst.setp.lt.u32(more, turn, 3)
        store(C, acc, tid, N, f32)
        ptx.ret()

    a, b = values((M, 16), f16, 1), values((N, 16), f16, 2)
    assert (twice(a, b) == 3 * (a.astype(np.float64) @ b.astype(np.float64).T)).all()
