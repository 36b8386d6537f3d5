// Generation of one token with a cache of CUTLASS's example 77 (Blackwell), as config.h says.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/kernel_hardware_info.h"

#include "device/fmha.hpp"
#include "collective/fmha_fusion.hpp"
#include "collective/sm100_fmha_gen_mainloop_warpspecialized.hpp"
#include "collective/sm100_fmha_gen_epilogue_warpspecialized.hpp"
#include "kernel/sm100_fmha_gen_kernel_warpspecialized.hpp"
#include "kernel/fmha_tile_scheduler.hpp"

using namespace cute;
using namespace cutlass::fmha;
#include "config.h"

using Problem = Shape<_1, int, int, Shape<Shape<int, int>, int>>;
using Query = Stride<_0, _1, Stride<Stride<int, int>, int>>;
using Fresh = Stride<_0, _1, Stride<Stride<_0, int>, int>>;
using Cache = Stride<int, _1, Stride<Stride<_0, int>, int>>;
using Mainloop = collective::Sm100FmhaGenMainloopWarpspecialized<
    Element, float, float, cutlass::half_t, TileShape, Query, Fresh, Fresh, Cache, Cache, Query>;
using Operation = device::FMHA<kernel::Sm100FmhaGenKernelWarpspecialized<
    Problem, Mainloop, collective::Sm100FmhaGenEpilogueWarpspecialized<cutlass::half_t, Query>, Scheduler>>;

// Arrays: lengths, places of the sequences in the cache, Q, new K, new V, cache of K, cache of V, O. `most` keys are in the cache.
extern "C" int build(void** at, int b, int heads, int groups, int most, int d, int multiprocessors) {
  cutlass::KernelHardwareInfo hardware;
  hardware.device_id = 0;
  hardware.sm_count = multiprocessors;
  int each = heads / groups;
  Problem problem = make_shape(_1{}, most, d, make_shape(make_shape(each, groups), b));
  Query of_q = make_stride(_0{}, _1{}, make_stride(make_stride(d, d * each), d * heads));
  Fresh of_new = make_stride(_0{}, _1{}, make_stride(make_stride(_0{}, d), d * groups));
  Cache of_cache = make_stride(d * groups, _1{}, make_stride(make_stride(_0{}, d), d * groups * most));
  Element** e = (Element**)at;
  typename Operation::Arguments arguments{
      problem, (int*)at[0], (int*)at[1], e[2], of_q, e[3], of_new, e[4], of_new, e[5], of_cache, e[6], of_cache,
      (cutlass::half_t*)at[7], of_q, hardware};
  Operation operation;
  if (operation.can_implement(arguments) != cutlass::Status::kSuccess || Operation::get_workspace_size(arguments)) return 1;
  if (operation.initialize(arguments, nullptr) != cutlass::Status::kSuccess) return 2;
  return operation.run() != cutlass::Status::kSuccess;
}
