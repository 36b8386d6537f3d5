// Gradients of attention of CUTLASS's example 77 (Blackwell): three kernels, as config.h says.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/kernel_hardware_info.h"

#include "collective/fmha_fusion.hpp"
#include "device/fmha_device_bwd.hpp"

using namespace cute;
using namespace cutlass::fmha::collective;
#include "config.h"

using Heads = cute::tuple<cute::tuple<int, int>, int>;
using Problem = cute::tuple<int, int, int, int, Heads>;
using Queries = Stride<int, _1, Stride<Stride<int, int>, int>>;
using Keys = Stride<int, _1, Stride<Stride<_0, int>, int>>;
using Operation = cutlass::fmha::device::Sm100FmhaBwd<Problem, Element, float, TileShape, false, Mask>;

// Arrays: Q, K, V, O, the logarithms of the sums of rows, dO, dQ, dK, dV, workspace.
extern "C" int build(void** at, int b, int heads, int groups, int q, int k, int d, int multiprocessors) {
  cutlass::KernelHardwareInfo hardware;
  hardware.device_id = 0;
  hardware.sm_count = multiprocessors;
  int each = heads / groups;
  Problem problem{q, k, d, d, {{each, groups}, b}};
  Queries of_q = make_stride(d, _1{}, make_stride(make_stride(d * q, d * q * each), b == 1 ? 0 : d * q * heads));
  Keys of_k = make_stride(d, _1{}, make_stride(make_stride(_0{}, d * k), b == 1 ? 0 : d * k * groups));
  Stride<_1, Stride<Stride<int, int>, int>> of_sums = make_stride(_1{}, make_stride(make_stride(q, q * each), b == 1 ? 0 : q * heads));
  Element** e = (Element**)at;
  typename Operation::Arguments arguments{
      problem, e[0], of_q, e[1], of_k, e[2], of_k, e[3], of_q, (float*)at[4], of_sums, e[5], of_q,
      e[6], of_q, e[7], of_k, e[8], of_k, 1 / sqrtf(d), hardware};
  Operation operation;
  if (operation.can_implement(arguments) != cutlass::Status::kSuccess) return 1;
  if (operation.initialize(arguments, at[9]) != cutlass::Status::kSuccess) return 2;
  return operation.run() != cutlass::Status::kSuccess;
}
