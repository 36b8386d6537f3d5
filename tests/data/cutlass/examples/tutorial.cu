// A product of CuTe's tutorials for Blackwell, the file that config.h names; its own `main` is left out.
#define main main_of_the_tutorial
#include "config.h"
#undef main

// Arrays: A, B, C, D; D = A Bᵀ + C / 2.
extern "C" int build(void** at, int m, int n, int k) {
  auto rows = [](int count, int length) { return make_layout(make_shape(count, length), make_stride(length, Int<1>{})); };
  gemm_host_f16xf16_f32_f32_tnt((cutlass::half_t*)at[0], rows(m, k), (cutlass::half_t*)at[1], rows(n, k),
                                (float*)at[2], rows(m, n), (float*)at[3], rows(m, n), 1.0f, 0.5f);
  return 0;
}
