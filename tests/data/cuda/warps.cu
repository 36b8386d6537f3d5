// Warps and groups: shuffles, votes, match, reduce, cooperative groups, clusters, cuda::barrier, pipelines.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#pragma nv_diag_suppress 20054  // the barrier is initialised by init()
namespace cg = cooperative_groups;

extern "C" __global__ void shuffles(int *o, const int *a) {
  int i = threadIdx.x, x = a[i];
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
  o[i] = x + __shfl_sync(~0u, x, 3) + __shfl_up_sync(~0u, x, 1) + __shfl_down_sync(0xffffu, x, 2, 16);
  o[i + 32] = __ballot_sync(~0u, x > 3) + __any_sync(~0u, x) + 2 * __all_sync(~0u, x) + __activemask();
  __syncwarp(); double d = x; d = __shfl_sync(~0u, d, 5); o[i + 64] = (int)d;
#if __CUDA_ARCH__ >= 800
  o[i + 96] = __match_any_sync(~0u, x) + __reduce_add_sync(~0u, x) + __reduce_max_sync(~0u, x) + (int)__reduce_or_sync(~0u, (unsigned)x); int p; o[i + 128] = __match_all_sync(~0u, x, &p) + p;
#endif
}

extern "C" __global__ void groups(int *o, const int *a) {
  cg::thread_block block = cg::this_thread_block(); auto warp = cg::tiled_partition<32>(block); auto tile = cg::tiled_partition<8>(warp);
  int x = a[block.thread_rank()]; x = cg::reduce(tile, x, cg::plus<int>()); block.sync(); if (warp.thread_rank() == 0) atomicAdd(o, x);
  auto active = cg::coalesced_threads(); o[block.thread_rank() + 1] = active.size() + warp.shfl(x, 1) + tile.any(x > 2) + tile.meta_group_rank();
}

extern "C" __global__ void counted(int *o, const int *a) { o[threadIdx.x] = __syncthreads_count(a[threadIdx.x]) + 1000 * __syncthreads_and(a[threadIdx.x]) + 2000 * __syncthreads_or(a[threadIdx.x]); }

extern "C" __global__ void grid_wide(int *o) { cg::grid_group g = cg::this_grid(); o[g.thread_rank()] = 1; g.sync(); if (g.thread_rank() == 0) o[g.size()] = o[5]; }

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clusters(int *o) {
  __shared__ int s[32]; cg::cluster_group c = cg::this_cluster(); s[threadIdx.x] = threadIdx.x * (c.block_rank() + 1); c.sync();
  int *other = c.map_shared_rank(s, c.block_rank() ^ 1); o[c.thread_rank()] = other[threadIdx.x]; c.sync();
}
#endif

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void copies(float *o, const float *in) {
  __shared__ alignas(16) float s[256]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x); block.sync();
  cg::memcpy_async(block, s, in, sizeof(s)); cg::wait(block); auto token = bar.arrive(); bar.wait(std::move(token)); o[threadIdx.x] = s[255 - threadIdx.x];
}
#endif
extern "C" __global__ void __launch_bounds__(256, 2) bounded(float *o) { o[threadIdx.x] *= 2; }
