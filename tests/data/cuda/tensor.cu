// Tensor cores and asynchronous copies by inline assembly: mma, ldmatrix, cp.async, mbarrier, TMA, wgmma, setmaxnreg.
#include <cstdint>
#include <cuda.h>
#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void mma_tile(float *c, const uint32_t *a, const uint32_t *b) {  // one warp: m16n8k16, fragments in memory order of the lanes
  int t = threadIdx.x; float d[4] = {0, 0, 0, 0}; const uint32_t *p = a + 4 * t, *q = b + 2 * t;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]));
  for (int i = 0; i < 4; i++) c[4 * t + i] = d[i];
}

extern "C" __global__ void wmma_tile(float *c, const __half *a, const __half *b) {
  using namespace nvcuda::wmma; fragment<matrix_a, 16, 16, 16, __half, row_major> x; fragment<matrix_b, 16, 16, 16, __half, col_major> y; fragment<accumulator, 16, 16, 16, float> z;
  fill_fragment(z, 0.f); load_matrix_sync(x, a, 16); load_matrix_sync(y, b, 16); mma_sync(z, x, y, z); store_matrix_sync(c, z, 16, mem_row_major);
}

extern "C" __global__ void ldmatrix_copy(uint32_t *out, const uint4 *in) {
  __shared__ alignas(128) uint4 s[64]; int t = threadIdx.x; uint32_t at = (uint32_t)__cvta_generic_to_shared(&s[t]), r[4];
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n\tcp.async.commit_group;\n\tcp.async.wait_group 0;\n" :: "r"(at), "l"(in + t), "r"(16) : "memory");
  __syncwarp(); asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  for (int i = 0; i < 4; i++) out[4 * t + i] = r[i];
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ __forceinline__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{\n\t.reg .pred P1;\n\tLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t@P1 bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}\n" :: "r"(bar), "r"(parity) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) tma_copy(float *out, const __grid_constant__ CUtensorMap map, int x, int y) {  // box 32 x 32 of floats
  __shared__ alignas(128) float tile[32 * 32]; __shared__ alignas(8) uint64_t barrier; uint32_t bar = (uint32_t)__cvta_generic_to_shared(&barrier), at = (uint32_t)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory"); }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(4096) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :: "r"(at), "l"(&map), "r"(bar), "r"(x), "r"(y) : "memory");
  }
  wait(bar, 0);
  for (int i = threadIdx.x; i < 1024; i += 128) out[i] = tile[i];
}

extern "C" __global__ void __launch_bounds__(128) wgmma_tile(float *out, const uint4 *in) {  // m64n8k16, no swizzle
  __shared__ alignas(1024) uint4 a[128], b[16]; int t = threadIdx.x; a[t] = in[t]; if (t < 16) b[t] = in[128 + t]; float d[4] = {0, 0, 0, 0};
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
  uint64_t da = ((uint64_t)(((uint32_t)__cvta_generic_to_shared(a) & 0x3ffff) >> 4)) | (8ull << 16) | (16ull << 32), db = ((uint64_t)(((uint32_t)__cvta_generic_to_shared(b) & 0x3ffff) >> 4)) | (8ull << 16) | (16ull << 32);
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;\n}\n" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da), "l"(db), "r"(0));
  asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
  for (int i = 0; i < 4; i++) out[4 * t + i] = d[i];
}

extern "C" __global__ void __launch_bounds__(384) specialised(float *out) {
  if (threadIdx.x < 128) { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); } else { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); out[threadIdx.x] = 1; }
  asm volatile("bar.sync 1, 384;\n griddepcontrol.wait;\n griddepcontrol.launch_dependents;" ::: "memory");
}
#endif
