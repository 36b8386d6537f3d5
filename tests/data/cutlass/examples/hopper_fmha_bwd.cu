// Gradients of attention of CUTLASS's example 88 (Hopper): three kernels, as config.h says.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"

#include "collective/fmha_fusion.hpp"
#include "device/fmha_device_bwd.hpp"
#include "kernel/fmha_kernel_builder.hpp"

using namespace cute;
using namespace cutlass::fmha::kernel;
using namespace cutlass::fmha::collective;
#include "config.h"

using Operation = cutlass::fmha::device::FmhaBwd<Element, float, TileShape, Fusion OPTIONS>;

// Arrays: Q, K, V, O, the logarithms of the sums of rows, dO, dQ, dK, dV, workspace.
extern "C" int build(void** at, int b, int h, int q, int k, int d, int multiprocessors) {
  cutlass::KernelHardwareInfo hardware;
  hardware.device_id = 0;
  hardware.sm_count = multiprocessors;
  cute::tuple<int, int, int, _1> q_strides = make_stride(h * q * d, q * d, d, _1{}), k_strides = make_stride(h * k * d, k * d, d, _1{});
  cute::tuple<int, int, _1> sums = make_stride(h * q, q, _1{});
  Element** e = (Element**)at;
  typename Operation::Arguments arguments{
      cute::tuple<int, int, int, int, int>{b, h, q, k, d},
      e[0], q_strides, e[1], k_strides, e[2], k_strides, e[3], q_strides, (float*)at[4], sums,
      e[5], q_strides, e[6], q_strides, e[7], k_strides, e[8], k_strides, hardware};
  Operation operation;
  if (operation.can_implement(arguments) != cutlass::Status::kSuccess) return 1;
  if (operation.initialize(arguments, at[9]) != cutlass::Status::kSuccess) return 2;
  return operation.run() != cutlass::Status::kSuccess;
}
