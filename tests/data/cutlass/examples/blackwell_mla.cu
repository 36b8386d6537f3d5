// Decoding with latent attention of CUTLASS's example 77 (Blackwell, pairs of CTAs), as config.h says.
#include <cmath>
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/kernel_hardware_info.h"

#include "device/sm100_mla.hpp"
#include "kernel/sm100_mla_tile_scheduler.hpp"

using namespace cute;
using namespace cutlass::fmha::kernel;
#include "config.h"

using Latent = Shape<_512, _64>;
using Kernel = Sm100FmhaMlaKernelTmaWarpspecialized<Shape<_128, _128, Latent>, Element, float, cutlass::half_t, float, Scheduler PAGED>;
using Operation = cutlass::fmha::device::MLA<Kernel>;

// Arrays: Q (latent, then rope), the cache (latent, then rope), O, logarithms of the sums of rows, lengths, page table, workspace.
// page: keys of a page, or 0; pages: rows of the page table.
extern "C" int build(void** at, int b, int k, int page, int pages, int splits, int fused, int multiprocessors) {
  cutlass::KernelHardwareInfo hardware;
  hardware.device_id = 0;
  hardware.sm_count = multiprocessors;
  int64_t wide = 576, heads = 128;
  auto of_q = cute::make_tuple(wide, _1{}, heads * wide);
  auto of_c = cute::make_tuple(wide, _1{}, (page ? page : k) * wide);
  auto of_o = cute::make_tuple(int64_t(512), _1{}, heads * 512);
  cute::tuple<_1, int> of_sums = cute::make_tuple(_1{}, 128), of_pages = cute::make_tuple(_1{}, page ? pages : 0);
  Element *q = (Element*)at[0], *c = (Element*)at[1];
  typename Operation::Arguments arguments{
      cute::make_tuple(_128{}, k, Latent{}, b),
      {float(1 / std::sqrt(192.0)), q, of_q, q + 512, of_q, c, of_c, c + 512, of_c,
       page ? (int*)at[4] : nullptr, page ? (int*)at[5] : nullptr, of_pages, page ? pages : -1, page ? page : -1},
      {(cutlass::half_t*)at[2], of_o, (float*)at[3], of_sums}, hardware, splits, nullptr, fused != 0};
  Operation operation;
  if (operation.can_implement(arguments) != cutlass::Status::kSuccess) return 1;
  if (operation.initialize(arguments, at[6]) != cutlass::Status::kSuccess) return 2;
  return operation.run() != cutlass::Status::kSuccess;
}
