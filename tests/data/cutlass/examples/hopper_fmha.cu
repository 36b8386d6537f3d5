// Attention of CUTLASS's example 88 (Hopper, forward), as config.h says.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"

#include "collective/fmha_fusion.hpp"
#include "device/device_universal.hpp"
#include "kernel/fmha_kernel_builder.hpp"

using namespace cute;
using namespace cutlass::fmha::kernel;
using namespace cutlass::fmha::collective;
#include "config.h"

using Rows = cute::tuple<int, _1, cute::tuple<int, int>>;
#ifdef VALUES_BY_COLUMNS
using Values = cute::tuple<_1, int, cute::tuple<int, int>>;
#else
using Values = Rows;
#endif
using Kernel = typename FmhaBuilder<Element, float, float, TileShape, Rows, Rows, Values, Fusion, Schedule OPTIONS>::Kernel;
using Operation = cutlass::device::Universal<Kernel>;

// Arrays: Q, K, V, O and the logarithms of the sums of rows.
extern "C" int build(void** at, int b, int h, int q, int k, int d, int multiprocessors) {
  cutlass::KernelHardwareInfo hardware;
  hardware.device_id = 0;
  hardware.sm_count = multiprocessors;
  Rows of_q = make_stride(d, _1{}, make_stride(h * q * d, q * d)), of_k = make_stride(d, _1{}, make_stride(h * k * d, k * d));
#ifdef VALUES_BY_COLUMNS
  Values of_v = make_stride(_1{}, k, make_stride(h * k * d, k * d));
#else
  Values of_v = of_k;
#endif
  cute::tuple<_1, cute::tuple<int, int>> of_sums = make_stride(_1{}, make_stride(h * q, q));
  typename Operation::Arguments arguments{
      cute::tuple<int, int, int, int, int>{b, h, q, k, d},
      {(Element*)at[0], of_q, (Element*)at[1], of_k, (Element*)at[2], of_v},
      {(Element*)at[3], of_q, (float*)at[4], of_sums},
      hardware};
  Operation operation;
  if (operation.can_implement(arguments) != cutlass::Status::kSuccess || Operation::get_workspace_size(arguments)) return 1;
  if (operation.initialize(arguments, nullptr) != cutlass::Status::kSuccess) return 2;
  return operation.run() != cutlass::Status::kSuccess;
}
