// Marlin of vLLM: halves times quantised weights, split over CTAs by stripes, as config.h says.
#include "config.h"
#define MARLIN_NAMESPACE_NAME marlin
#include "marlin_template.h"

// Arrays: A, the weights as Marlin packs them, C, sums of stripes, scales, zero points, locks.
extern "C" int build(void** at, int m, int n, int k, int blocks) {
  constexpr int threads = 256, stages = 4;
  auto kernel = &marlin::Marlin<vllm::kFloat16.id(), WEIGHT.id(), vllm::kFloat16.id(), vllm::kFloat16.id(), threads, 1, 8, 8,
                                false, stages, GROUP / 16, false>;
  int shared = 96 << 10;
  kernel<<<blocks, threads, shared>>>((int4*)at[0], (int4*)at[1], (int4*)at[2], (int4*)at[3], nullptr, nullptr, (int4*)at[4],
                                      nullptr, (int4*)at[5], m, n, k, k, (int*)at[6], false, false, true, shared);
  return 0;
}
