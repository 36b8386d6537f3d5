// Threads that wait for each other: scopes of atomics, libcu++ and cooperative groups, grids, clusters.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#pragma nv_diag_suppress 20054  // objects in shared memory are initialised by init()
namespace cg = cooperative_groups;

extern "C" __global__ void scopes(int *out, unsigned long long *wide, float *f) {  // atomics of each scope and order, on integers and floats
  __shared__ cuda::atomic<int, cuda::thread_scope_block> block_count;
  int t = threadIdx.x;
  if (t == 0) new (&block_count) cuda::atomic<int, cuda::thread_scope_block>(0);
  __syncthreads();
  block_count.fetch_add(t, cuda::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_device> device(out[0]);
  cuda::atomic_ref<int, cuda::thread_scope_system> system(out[1]);
  device.fetch_add(1, cuda::memory_order_acq_rel);
  system.fetch_or(1 << (t & 31));
  cuda::atomic_ref<int, cuda::thread_scope_device>(out[2]).fetch_min(-t, cuda::memory_order_release);
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(wide[0]).fetch_xor(1ull << (t & 63));
  cuda::atomic_ref<unsigned long long>(wide[1]).fetch_max(3ull * t);
  cuda::atomic_ref<float, cuda::thread_scope_device>(f[0]).fetch_add(.5f);
  cuda::atomic_ref<float, cuda::thread_scope_device>(f[1]).fetch_max((float)t);
  __syncthreads();
  if (t == 0) atomicAdd(out + 3, block_count.load());
}

extern "C" __global__ void message_passing(int *data, int *flag, int *out) {  // release and acquire between blocks of 32
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x * 3 + 1;
    __syncthreads();
    if (threadIdx.x == 0) f.store(1, cuda::memory_order_release);
    return;
  }
  while (f.load(cuda::memory_order_acquire) == 0) {}
  out[(blockIdx.x - 1) * 32 + threadIdx.x] = data[31 - threadIdx.x];
}

extern "C" __global__ void latch_and_semaphore(int *out) {  // one block of 64: two of four warps at a time, then all meet
  __shared__ cuda::latch<cuda::thread_scope_block> *door;
  __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 2> *seats;
  __shared__ alignas(16) char memory[64];
  __shared__ int inside, most;
  int t = threadIdx.x;
  if (t == 0) {
    door = new (memory) cuda::latch<cuda::thread_scope_block>(blockDim.x);
    seats = new (memory + 32) cuda::counting_semaphore<cuda::thread_scope_block, 2>(2);
    inside = most = 0;
  }
  __syncthreads();
  if (t % 16 == 0) {
    seats->acquire();
    atomicMax(&most, atomicAdd(&inside, 1) + 1);
    out[1 + t / 16] = t;
    atomicSub(&inside, 1);
    seats->release();
  }
  door->arrive_and_wait();
  if (t == 0) out[0] = most <= 2 && inside == 0;
}

extern "C" __global__ void roles(float *out, const float *in, int n) {  // one block of 64: a warp copies, a warp adds, through 2 stages
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) float stage[2][32];
  auto block = cg::this_thread_block();
  auto role = block.thread_rank() < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  float sum = 0;
  for (int i = 0; i < n; i++) {
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[i % 2][threadIdx.x], in + 32 * i + threadIdx.x, sizeof(float), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += stage[i % 2][63 - threadIdx.x] * (i + 1);
      pipe.consumer_release();
    }
  }
  if (role == cuda::pipeline_role::consumer) out[threadIdx.x - 32] = sum;
}

extern "C" __global__ void grid_steps(int *x, int *y, int steps) {  // a cooperative launch: each step reads what the neighbours wrote
  auto grid = cg::this_grid();
  int i = grid.thread_rank(), n = grid.size();
  for (int s = 0; s < steps; s++) {
    y[i] = x[(i + 1) % n] * 3 - x[(i + n - 1) % n];
    grid.sync();
    int *t = x;
    x = y, y = t;
  }
}

extern "C" __global__ void large_tiles(int *out, const int *in) {  // one block of 128: tiles of two warps, scans, copies of a group
  __shared__ alignas(16) int stage[128];
  __shared__ cg::block_tile_memory<128> memory;
  auto block = cg::this_thread_block(memory);
  cg::memcpy_async(block, stage, in, sizeof(stage));
  cg::wait(block);
  auto tile = cg::tiled_partition<64>(block);
  int x = stage[127 - threadIdx.x];
  out[threadIdx.x] = cg::reduce(tile, x, cg::plus<int>());
  out[128 + threadIdx.x] = tile.shfl(x, 5) + tile.any(x > 9) * 1000 + tile.meta_group_rank() * 10000;
  out[256 + threadIdx.x] = cg::exclusive_scan(cg::tiled_partition<32>(block), x);
  auto token = block.barrier_arrive();
  stage[threadIdx.x] = x;
  block.barrier_wait(std::move(token));
  block.sync();
  out[384 + threadIdx.x] = stage[(threadIdx.x * 5) % 128];
}

extern "C" __global__ void small_atomics(__half2 *h, __nv_bfloat162 *b, unsigned short *s, double *d, int *i) {  // powers of two: any order adds to the same
  int t = threadIdx.x;
  atomicAdd(h, __floats2half2_rn(1, .5f)), atomicAdd(b, __floats2bfloat162_rn(2, 1)), atomicAdd(d, .25);
  unsigned short old = *s, seen;
  do { seen = old; old = atomicCAS(s, seen, (unsigned short)(seen + 3)); } while (old != seen);
  atomicInc((unsigned *)i, 9), atomicDec((unsigned *)i + 1, 9), atomicAnd(i + 2, ~(1 << t)), atomicXor(i + 3, t), atomicAdd_system(i + 4, t), atomicAdd_block(i + 5, t);
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void wide_atomics(float2 *f2, float4 *f4, unsigned *box) {  // vectors of floats; a swap of 16 bytes
  atomicAdd(f2, make_float2(1, 2)), atomicAdd(f4, make_float4(1, 2, 4, 8));
  struct alignas(16) Pair { unsigned long long a, b; };
  Pair *p = (Pair *)box, old = {0, 0}, seen;
  do { seen = old; Pair next{seen.a + 1, seen.b + threadIdx.x}; old = atomicCAS(p, seen, next); } while (old.a != seen.a || old.b != seen.b);
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) ring_of_blocks(int *out) {  // blocks of 32 pass a row on through shared memory
  __shared__ int row[2][32];
  auto cluster = cg::this_cluster();
  int t = threadIdx.x, rank = cluster.block_rank();
  row[0][t] = rank * 100 + t;
  cluster.sync();
  for (int s = 0; s < 4; s++) {
    int *next = cluster.map_shared_rank(row[(s + 1) % 2], (rank + 1) % cluster.num_blocks());
    next[t] = row[s % 2][t] * 2 + 1;
    cluster.barrier_wait(cluster.barrier_arrive());
  }
  out[cluster.thread_rank()] = row[0][t];
}
#endif
