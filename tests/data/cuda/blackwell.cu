// Fifth-generation tensor cores by inline assembly: tcgen05 allocation, copies, multiplication, loads.
#include <cstdint>
extern "C" __global__ void __launch_bounds__(128) tcgen05_tile(uint32_t *out, uint64_t a, uint64_t b) {
  __shared__ uint32_t base; __shared__ alignas(8) uint64_t barrier; uint32_t at = (uint32_t)__cvta_generic_to_shared(&base), bar = (uint32_t)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n\ttcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" :: "r"(at), "r"(128) : "memory");
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
  __syncthreads(); uint32_t d = base;
  if (threadIdx.x == 0) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\ttcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5, %5, %5, %5}, p;\n\t}" :: "r"(d), "l"(a), "l"(b), "r"(0x8200490), "r"(0), "r"(0));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(bar) : "memory");
  }
  asm volatile("{\n\t.reg .pred P;\n\tL: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], 0;\n\t@!P bra L;\n\t}" :: "r"(bar) : "memory");
  uint32_t r[4]; asm volatile("tcgen05.fence::after_thread_sync;\n\ttcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];\n\ttcgen05.wait::ld.sync.aligned;" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(d));
  for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = r[i];
  __syncthreads(); if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(d), "r"(128));
}
extern "C" __global__ void packed(float2 *o, const float2 *a) { float2 x = a[threadIdx.x]; uint64_t p = *(uint64_t *)&x, q; asm("fma.rn.f32x2 %0, %1, %1, %1;" : "=l"(q) : "l"(p)); o[threadIdx.x] = *(float2 *)&q; }
