// A GEMM of CUTLASS 3, as `config.h` says, and a function for the host that writes its parameters and its launch.
// Compiled by regenerate.py, which also writes config.h.
#include <cstring>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/dispatch_policy.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

using namespace cute;
#include "config.h"

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    ArchTag, OpClass, TileShape, ClusterShape, cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    ElementC, LayoutC, AlignC, ElementC, LayoutC, AlignC, EpilogueSchedule>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    ArchTag, OpClass, ElementA, LayoutA, AlignA, ElementB, LayoutB, AlignB, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    KernelSchedule>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, void>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

struct Launch {
  int grid[3], block[3], cluster[3], shared, size;
};

// D = A Bᵀ + C; `e` holds the metadata of a sparse A, `fa` and `fb` scale factors.
extern "C" int build(void* params, Launch* launch, void* a, void* b, void* c, void* d, void* e, void* fa, void* fb,
                     int m, int n, int k, int multiprocessors) {
  cutlass::KernelHardwareInfo hardware;
  hardware.device_id = 0;
  hardware.sm_count = multiprocessors;
  hardware.max_active_clusters = multiprocessors / (size<0>(ClusterShape{}) * size<1>(ClusterShape{}));
  auto problem = make_shape(m, n, k, 1);
  auto strides = cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, {m, n, 1});
  typename Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm, problem, {MAINLOOP},
      {{1.0f, 1.0f}, (ElementC*)c, strides, (ElementC*)d, strides}, hardware};
  if (!Kernel::can_implement(arguments) || Kernel::get_workspace_size(arguments)) return 1;
  auto p = Kernel::to_underlying_arguments(arguments, nullptr);
  dim3 grid = Kernel::get_grid_shape(p), block = Kernel::get_block_shape();
  *launch = {{(int)grid.x, (int)grid.y, (int)grid.z}, {(int)block.x, (int)block.y, (int)block.z},
             {size<0>(ClusterShape{}), size<1>(ClusterShape{}), 1}, (int)Kernel::SharedStorageSize, (int)sizeof(p)};
  memcpy(params, &p, sizeof(p));
  return 0;
}

LAYOUTS
template __global__ void cutlass::device_kernel<Kernel>(CUTLASS_GRID_CONSTANT typename Kernel::Params const);
