"""A product for Hopper in the CuTe DSL: tensor maps, an mbarrier, products of a warpgroup; compiled with kernels.py."""

import cutlass
from cutlass import cute, utils
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.utils import hopper_helpers
from kernels import F, H, tensors

M, N, K, STEPS = 64, 64, 64, 3


@cute.kernel
def hopper_kernel(
    atom_a: cute.CopyAtom,
    ma: cute.Tensor,
    atom_b: cute.CopyAtom,
    mb: cute.Tensor,
    c: cute.Tensor,
    tiled: cute.TiledMma,
    la: cute.ComposedLayout,
    lb: cute.ComposedLayout,
):
    thread, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    memory = utils.SmemAllocator()
    bar = memory.allocate_array(cutlass.Int64, 1)
    sa = memory.allocate_tensor(cutlass.Float16, la.outer, 1024, swizzle=la.inner)
    sb = memory.allocate_tensor(cutlass.Float16, lb.outer, 1024, swizzle=lb.inner)
    if thread == 0:
        cute.arch.mbarrier_init(bar, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    ga, gb = cute.local_tile(ma, (M, K), (by, None)), cute.local_tile(mb, (N, K), (bx, None))
    one = cute.make_layout(1)
    tsa, tga = cpasync.tma_partition(atom_a, 0, one, cute.group_modes(sa, 0, 2), cute.group_modes(ga, 0, 2))
    tsb, tgb = cpasync.tma_partition(atom_b, 0, one, cute.group_modes(sb, 0, 2), cute.group_modes(gb, 0, 2))
    part = tiled.get_slice(thread)
    ra, rb = tiled.make_fragment_A(part.partition_A(sa)), tiled.make_fragment_B(part.partition_B(sb))
    tc = part.partition_C(cute.local_tile(c, (M, N), (by, bx)))
    acc = cute.make_rmem_tensor(tc.shape, cutlass.Float32)
    tiled.set(warpgroup.Field.ACCUMULATE, False)
    for k in cutlass.range_constexpr(STEPS):
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(bar, (M + N) * K * 2)
            cute.copy(atom_a, tga[None, k], tsa[None, 0], tma_bar_ptr=bar)
            cute.copy(atom_b, tgb[None, k], tsb[None, 0], tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, k % 2)
        warpgroup.fence()
        for j in cutlass.range_constexpr(cute.size(ra, mode=[2])):
            cute.gemm(tiled, acc, ra[None, None, j, 0], rb[None, None, j, 0], acc)
            tiled.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.sync_threads()
    cute.autovec_copy(acc, tc)


@cute.jit
def hopper(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    kind = utils.LayoutEnum.ROW_MAJOR
    major = kind.sm90_mma_major_mode()
    tiled = hopper_helpers.make_trivial_tiled_mma(H, H, major, major, F, (1, 1, 1), tiler_mn=(M, N))
    la = hopper_helpers.make_smem_layout_a(kind, (M, N, K), H, 1)
    lb = hopper_helpers.make_smem_layout_b(kind, (M, N, K), H, 1)
    op = cpasync.CopyBulkTensorTileG2SOp()
    atom_a, ta = cpasync.make_tiled_tma_atom(op, a, cute.slice_(la, (None, None, 0)), (M, K))
    atom_b, tb = cpasync.make_tiled_tma_atom(op, b, cute.slice_(lb, (None, None, 0)), (N, K))
    hopper_kernel(atom_a, ta, atom_b, tb, c, tiled, la, lb).launch(grid=[2, 2, 1], block=[128, 1, 1])


KERNELS = {"hopper": (hopper, lambda: tensors(H, (128, 192), (128, 192)) + tensors(F, (128, 128)))}
