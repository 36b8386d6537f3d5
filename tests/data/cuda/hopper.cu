// Hopper through libcu++ and inline assembly: bulk copies, tensor maps, products of warpgroups, multicast, stores to peers.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_bf16.h>
#pragma nv_diag_suppress 20054
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
namespace bulk = cuda::device::experimental;
using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void bulk_copies(float *out, const float *in, int rows) {  // one block of 64: rows of 256 floats come and go in bulk
  __shared__ alignas(128) float row[2][256];
  __shared__ barrier full[2];
  int t = threadIdx.x;
  if (t == 0) {
    init(&full[0], 64), init(&full[1], 64);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  for (int r = 0; r < rows; r++) {
    int s = r % 2;
    barrier::arrival_token token;
    if (t == 0) {
      if (r >= 2) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
      cuda::memcpy_async(row[s], in + 256 * r, cuda::aligned_size_t<16>(1024), full[s]);
      token = cuda::device::barrier_arrive_tx(full[s], 1, 0);
    } else
      token = full[s].arrive();
    full[s].wait(std::move(token));
    for (int i = t; i < 256; i += 64) row[s][i] = row[s][i] * 2 + r;
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
    if (t == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 256 * r, row[s], 1024);
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (t == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

extern "C" __global__ void tensor_tiles(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {  // 32 x 32 ints, transposed by blocks
  __shared__ alignas(128) int tile[32][32], turned[32][32];
  __shared__ barrier full;
  int t = threadIdx.x, x = blockIdx.x * 32, y = blockIdx.y * 32;
  if (t == 0) {
    init(&full, blockDim.x);
    bulk::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  barrier::arrival_token token;
  if (t == 0) {
    bulk::cp_async_bulk_tensor_2d_global_to_shared(&tile, &from, x, y, full);
    token = cuda::device::barrier_arrive_tx(full, 1, sizeof(tile));
  } else
    token = full.arrive();
  full.wait(std::move(token));
  for (int i = t; i < 1024; i += blockDim.x) turned[i % 32][i / 32] = tile[i / 32][i % 32];
  bulk::fence_proxy_async_shared_cta();
  __syncthreads();
  if (t == 0) {
    bulk::cp_async_bulk_tensor_2d_shared_to_global(&to, y, x, &turned);
    bulk::cp_async_bulk_commit_group();
    bulk::cp_async_bulk_wait_group_read<0>();
  }
}

extern "C" __global__ void bulk_sums(int *out, const int *in) {  // blocks of 32 add their rows to one row in global memory
  __shared__ alignas(128) int row[64];
  row[threadIdx.x] = in[64 * blockIdx.x + threadIdx.x];
  row[threadIdx.x + 32] = in[64 * blockIdx.x + threadIdx.x + 32];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, row, sizeof(row));
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) stores_to_peers(int *out) {  // blocks of 32: st.async to the neighbour, whose barrier counts the bytes
  __shared__ alignas(16) int box[32];
  __shared__ alignas(8) uint64_t full;
  auto cluster = cg::this_cluster();
  int t = threadIdx.x;
  if (t == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &full, sizeof(box));
  }
  cluster.sync();
  int peer = cluster.block_rank() ^ 1;
  ptx::st_async(cluster.map_shared_rank(&box[31 - t], peer), (int)(100 * blockIdx.x + t), cluster.map_shared_rank(&full, peer));
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full, 0)) {}
  out[32 * blockIdx.x + t] = box[t];
  cluster.sync();
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// A product of bf16 with a ring of tiles: warp 4 loads through tensor maps (128-byte swizzle), a warpgroup multiplies.
__device__ __forceinline__ uint64_t descriptor(const void *p) {  // K-major, 128-byte swizzle
  uint64_t at = (uint64_t)__cvta_generic_to_shared(p);
  return (at & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
extern "C" __global__ void __launch_bounds__(160) warpgroup_product(
    float *c, const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, int n, int k) {  // tiles of 64 x 64
  extern __shared__ __align__(1024) char memory[];
  constexpr int STAGES = 3, TILE = 64 * 64 * 2;
  __shared__ alignas(8) uint64_t full[STAGES], empty[STAGES];
  int t = threadIdx.x, row = blockIdx.y * 64, column = blockIdx.x * 64;
  if (t == 0) {
    for (int s = 0; s < STAGES; s++) ptx::mbarrier_init(&full[s], 1), ptx::mbarrier_init(&empty[s], 128);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (t >= 128) {
    if (t == 128)
      for (int i = 0; i < k / 64; i++) {
        int s = i % STAGES;
        char *to = memory + 2 * TILE * s;
        while (!ptx::mbarrier_try_wait_parity(&empty[s], (i / STAGES & 1) ^ 1)) {}
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], 2 * TILE);
        int at_a[2] = {64 * i, row}, at_b[2] = {64 * i, column};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &a, at_a, &full[s]);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to + TILE, &b, at_b, &full[s]);
      }
    return;
  }
  float d[32];
  for (int i = 0; i < 32; i++) d[i] = 0;
  for (int i = 0; i < k / 64; i++) {
    int s = i % STAGES;
    while (!ptx::mbarrier_try_wait_parity(&full[s], i / STAGES & 1)) {}
    char *from = memory + 2 * TILE * s;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int j = 0; j < 4; j++)
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
          "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
            "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
            "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
            "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
          : "l"(descriptor(from + 32 * j)), "l"(descriptor(from + TILE + 32 * j)));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    ptx::mbarrier_arrive(&empty[s]);
  }
  for (int i = 0; i < 32; i += 2) {
    int y = row + t / 32 * 16 + t % 32 / 4 + (i % 4 / 2) * 8, x = column + i / 4 * 8 + t % 4 * 2;
    c[y * n + x] = d[i], c[y * n + x + 1] = d[i + 1];
  }
}
#endif
