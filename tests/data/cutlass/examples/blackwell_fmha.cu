// Attention of CUTLASS's example 77 (Blackwell, forward), as config.h says.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/kernel_hardware_info.h"

#include "device/fmha.hpp"
#include "collective/fmha_fusion.hpp"
#include "collective/sm100_fmha_fwd_mainloop_tma_warpspecialized.hpp"
#include "collective/sm100_fmha_fwd_epilogue_tma_warpspecialized.hpp"
#include "kernel/fmha_options.hpp"
#include "kernel/fmha_tile_scheduler.hpp"
#include "kernel/sm100_fmha_fwd_kernel_tma_warpspecialized.hpp"

using namespace cute;
using namespace cutlass::fmha::collective;
#include "config.h"

using Heads = cute::tuple<cute::tuple<int, int>, int>;
#ifdef LENGTHS_FROM_MEMORY
using Problem = cute::tuple<VariableLength, VariableLength, int, Heads>;
#else
using Problem = cute::tuple<int, int, int, Heads>;
#endif
using Queries = cute::tuple<int, _1, Heads>;
using Keys = cute::tuple<int, _1, cute::tuple<cute::tuple<_0, int>, int>>;
using Sums = cute::tuple<_1, Heads>;
using Mainloop = Sm100FmhaFwdMainloopTmaWarpspecialized<Element, float, float, TileShape, Queries, Keys, Keys, Mask>;
using Epilogue = Sm100FmhaFwdEpilogueTmaWarpspecialized<ElementOut, float, typename Mainloop::TileShapePV, Queries, Sums>;
using Operation = cutlass::fmha::device::FMHA<
    cutlass::fmha::kernel::Sm100FmhaFwdKernelTmaWarpspecialized<Problem, Mainloop, Epilogue, Scheduler>>;

// Arrays: Q, K, V, O, the logarithms of the sums of rows, and the starts of the sequences of Q and of K.
// With starts, q and k are the lengths of all sequences together, most_q and most_k the greatest ones, and O, whose tensor map
// begins before it, lies behind as much again.
extern "C" int build(void** at, int b, int heads, int groups, int q, int k, int d, int most_q, int most_k, int multiprocessors) {
  cutlass::KernelHardwareInfo hardware;
  hardware.device_id = 0;
  hardware.sm_count = multiprocessors;
  int each = heads / groups;
#ifdef LENGTHS_FROM_MEMORY
  Problem problem{{most_q, (int*)at[5], q}, {most_k, (int*)at[6], k}, d, {{each, groups}, b}};
  int whole = 0;
  ElementOut* o = (ElementOut*)at[3] + d * q * heads;
#else
  Problem problem{q, k, d, {{each, groups}, b}};
  int whole = 1;
  ElementOut* o = (ElementOut*)at[3];
#endif
  Queries of_q = make_stride(heads * d, _1{}, make_stride(make_stride(d, each * d), whole * heads * d * q));
  Keys of_k = make_stride(groups * d, _1{}, make_stride(make_stride(_0{}, d), whole * groups * d * k));
  Sums of_sums = make_stride(_1{}, make_stride(make_stride(q, q * each), whole * q * heads));
  typename Operation::Arguments arguments{
      problem,
      {(Element*)at[0], of_q, (Element*)at[1], of_k, (Element*)at[2], of_k},
      {o, of_q, (float*)at[4], of_sums},
      hardware};
  Operation operation;
  if (operation.can_implement(arguments) != cutlass::Status::kSuccess || Operation::get_workspace_size(arguments)) return 1;
  if (operation.initialize(arguments, nullptr) != cutlass::Status::kSuccess) return 2;
  return operation.run() != cutlass::Status::kSuccess;
}
