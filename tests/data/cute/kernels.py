"""CuTe DSL kernels whose PTX is test data; `tests/data/ptx/cute/regenerate.py` compiles them without a GPU."""

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    size, _, _ = cute.arch.block_dim()
    i = block * size + thread
    c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=[4, 1, 1], block=[128, 1, 1])


@cute.kernel
def vector_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    x = a[(None, block * 128 + thread)].load()
    y = b[(None, block * 128 + thread)].load()
    c[(None, block * 128 + thread)] = x * y + x


@cute.jit
def vectors(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    parts = [cute.zipped_divide(t, (4,)) for t in (a, b, c)]
    vector_kernel(*parts).launch(grid=[2, 1, 1], block=[128, 1, 1])


@cute.kernel
def block_sum_kernel(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    allocator = cutlass.utils.SmemAllocator()
    sums = allocator.allocate_tensor(cutlass.Float32, cute.make_layout(32), 16)
    v = cute.arch.warp_reduction_sum(x[block * 256 + thread])
    if thread % 32 == 0:
        sums[thread // 32] = v
    cute.arch.barrier()
    if thread == 0:
        total = cutlass.Float32(0.0)
        for w in cutlass.range(8):
            total += sums[w]
        out[block] = total


@cute.jit
def block_sum(x: cute.Tensor, out: cute.Tensor):
    block_sum_kernel(x, out).launch(grid=[4, 1, 1], block=[256, 1, 1])


@cute.kernel
def transpose_kernel(x: cute.Tensor, out: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    allocator = cutlass.utils.SmemAllocator()
    tile = allocator.allocate_tensor(cutlass.Float32, cute.make_layout((32, 33), stride=(33, 1)), 16)
    for j in cutlass.range_constexpr(0, 32, 8):
        tile[ty + j, tx] = x[by * 32 + ty + j, bx * 32 + tx]
    cute.arch.sync_threads()
    for j in cutlass.range_constexpr(0, 32, 8):
        out[bx * 32 + ty + j, by * 32 + tx] = tile[tx, ty + j]


@cute.jit
def transpose(x: cute.Tensor, out: cute.Tensor):
    transpose_kernel(x, out).launch(grid=[2, 2, 1], block=[32, 8, 1])


@cute.kernel
def mma_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled_mma: cute.TiledMma):
    thread, _, _ = cute.arch.thread_idx()
    part = tiled_mma.get_slice(thread)
    ga, gb, gc = part.partition_A(a), part.partition_B(b), part.partition_C(c)
    ra, rb, rc = tiled_mma.make_fragment_A(ga), tiled_mma.make_fragment_B(gb), tiled_mma.make_fragment_C(gc)
    cute.autovec_copy(ga, ra)
    cute.autovec_copy(gb, rb)
    rc.fill(0.0)
    cute.gemm(tiled_mma, rc, ra, rb, rc)
    cute.autovec_copy(rc, gc)


@cute.jit
def mma(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled = cute.make_tiled_mma(cute.make_mma_atom(op), cute.make_layout((2, 2, 1)))
    mma_kernel(a, b, c, tiled).launch(grid=[1, 1, 1], block=[128, 1, 1])


@cute.kernel
def softmax_kernel(x: cute.Tensor, out: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    v = x[row, lane]
    m = v
    for d in cutlass.range_constexpr(5):
        m = cute.arch.fmax(m, cute.arch.shuffle_sync_bfly(m, offset=1 << d))
    e = cute.math.exp(v - m, fastmath=True)
    out[row, lane] = e / cute.arch.warp_reduction_sum(e)


@cute.jit
def softmax(x: cute.Tensor, out: cute.Tensor):
    softmax_kernel(x, out).launch(grid=[8, 1, 1], block=[32, 1, 1])


def tensors(dtype, *shapes):
    """Tensors without storage, rows contiguous."""
    return [make_fake_compact_tensor(dtype, s, stride_order=tuple(reversed(range(len(s))))) for s in shapes]


F, H = cutlass.Float32, cutlass.Float16
KERNELS = {
    "add": (add, lambda: tensors(F, (512,), (512,), (512,))),
    "vectors": (vectors, lambda: tensors(F, (1024,), (1024,), (1024,))),
    "block_sum": (block_sum, lambda: tensors(F, (1024,), (4,))),
    "transpose": (transpose, lambda: tensors(F, (64, 64), (64, 64))),
    "softmax": (softmax, lambda: tensors(F, (8, 32), (8, 32))),
    "mma": (mma, lambda: tensors(H, (32, 32), (16, 32)) + tensors(F, (32, 16))),
}
