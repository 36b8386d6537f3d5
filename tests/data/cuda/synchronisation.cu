// Programs that synchronise, each with its faults: NAME_0 is correct, NAME_1 and so on lack something.
// A line that a finding of variant N should name says `fault N`; variants that are no fault after all say why.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
namespace cg = cooperative_groups;
typedef unsigned u;
using Ref = cuda::atomic_ref<u, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed, acquire = cuda::memory_order_acquire, release = cuda::memory_order_release,
               acq_rel = cuda::memory_order_acq_rel;
#define OK(n) (BAD != n)
#define PROGRAM(name) template <int BAD> __device__ __forceinline__ void name(u *m, u *x)
#define VARIANT(name, n) extern "C" __global__ void name##_##n(u *m, u *x) { name<n>(m, x); }
#define VARIANTS1(name) VARIANT(name, 0) VARIANT(name, 1)
#define VARIANTS2(name) VARIANTS1(name) VARIANT(name, 2)
#define VARIANTS3(name) VARIANTS2(name) VARIANT(name, 3)

PROGRAM(spin_lock) {
  if (threadIdx.x) return;
  Ref lock(m[0]);
  while (lock.exchange(1, OK(1) ? acquire : relaxed));
  u v = x[0];  // fault 1, fault 2
  x[0] = v + 1;  // fault 1, fault 2
  lock.store(0, OK(2) ? release : relaxed);
}
VARIANTS2(spin_lock)

// Variants 1 and 2 are no data race: volatile accesses are strong (8.4), and those of one size to one place do not race.
PROGRAM(cas_lock) {
  if (threadIdx.x) return;
  while (atomicCAS(m, 0, 1));
  if (OK(1)) __threadfence();
  *(volatile u *)x = *(volatile u *)x + 1;
  if (OK(2)) __threadfence();
  atomicExch(m, 0);
}
VARIANTS2(cas_lock)

PROGRAM(ticket_lock) {
  if (threadIdx.x) return;
  Ref next(m[0]), serving(m[1]);
  u mine = next.fetch_add(1, relaxed);
  while (serving.load(OK(1) ? acquire : relaxed) != mine);
  x[0] += 1;  // fault 1, fault 2
  serving.store(mine + 1, OK(2) ? release : relaxed);
}
VARIANTS2(ticket_lock)

PROGRAM(sequence_lock) {
  if (threadIdx.x) return;
  Ref s(m[0]), a(m[1]), b(m[2]);
  if (blockIdx.x == 0) {
    for (u i = 1; i < 4; i++) {
      s.store(2 * i - 1, relaxed);
      cuda::atomic_thread_fence(release, cuda::thread_scope_device);
      if (OK(1)) {
        a.store(i, relaxed);
        b.store(i, relaxed);
      } else {
        m[1] = i;  // fault 1
        m[2] = i;  // fault 1
      }
      s.store(2 * i, release);
    }
    return;
  }
  u p, q, before, after;
  do {
    before = s.load(acquire);
    if (OK(1)) {
      p = a.load(relaxed);
      q = b.load(relaxed);
    } else {
      p = m[1];  // fault 1
      q = m[2];  // fault 1
    }
    cuda::atomic_thread_fence(acquire, cuda::thread_scope_device);
    after = s.load(relaxed);
  } while (before != after || (before & 1));
  x[blockIdx.x] = p - q;
}
VARIANTS1(sequence_lock)

PROGRAM(peterson) {
  if (threadIdx.x || blockIdx.x > 1) return;
  u me = blockIdx.x;
  Ref mine(m[me]), other(m[1 - me]), turn(m[2]);
  mine.store(1, relaxed);
  turn.store(1 - me, relaxed);
  __threadfence();
  while (other.load(OK(1) ? acquire : relaxed) && turn.load(OK(1) ? acquire : relaxed) == 1 - me);
  x[0] += 1;  // fault 1
  mine.store(0, release);
}
VARIANTS1(peterson)

PROGRAM(last_block) {
  __shared__ bool last;
  x[blockIdx.x * 32 + threadIdx.x % 32] = threadIdx.x;
  if (OK(1)) __threadfence();
  if (OK(2)) __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(m, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  if (OK(3)) __threadfence();
  u s = 0;
  for (u b = 0; b < gridDim.x; b++) s += x[b * 32 + threadIdx.x];  // fault 1, fault 2, fault 3
  x[1024 + threadIdx.x] = s;
}
VARIANTS3(last_block)

PROGRAM(look_back) {
  if (threadIdx.x) return;
  u b = blockIdx.x, s = 0;
  x[b] = b + 1;
  Ref(m[b]).store(1, OK(1) ? release : relaxed);
  if (b) {
    while (Ref(m[b - 1]).load(OK(2) ? acquire : relaxed) == 0);
    s = x[b - 1];  // fault 1, fault 2, fault 3
    while (Ref(m[b - 1]).load(acquire) != 2);
    s += x[64 + b - 1];  // fault 3
  }
  x[64 + b] = s + b + 1;
  Ref(m[b]).store(2, OK(3) ? release : relaxed);
}
VARIANTS3(look_back)

PROGRAM(packed_status) {  // value and flag in one volatile word: nothing to fence
  if (threadIdx.x) return;
  volatile unsigned long long *status = (volatile unsigned long long *)x;
  u b = blockIdx.x, total = 0;
  status[b] = (1ull << 32) | (b + 1);
  for (int p = (int)b - 1; p >= 0; p--) {
    unsigned long long v;
    while (((v = status[p]) >> 32) == 0);
    total += (u)v;
    if ((v >> 32) == 2) break;
  }
  status[b] = (2ull << 32) | (total + b + 1);
}
VARIANT(packed_status, 0)

PROGRAM(aggregated_atomics) {
  u lane = threadIdx.x & 31;
  if (lane % 3 == 0) return;
  u act = __activemask();
  int lead = __ffs(act) - 1;
  u base = 0;
  if (lane == lead) base = atomicAdd(m, __popc(act));
  base = __shfl_sync(act, base, lead);
  x[base + __popc(act & ((1u << lane) - 1))] = lane;
}
VARIANT(aggregated_atomics, 0)

PROGRAM(double_buffer) {
  __shared__ u b[2][128];
  u t = threadIdx.x, s = 0;
  b[0][t] = t;
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < 6; i++) {
    if (i < 5) b[(i + 1) & 1][t] = t * i + 1;  // fault 1
    s += b[i & 1][(t + 33) % 128];  // fault 1
    if (OK(1) || i != 3) __syncthreads();
  }
  x[blockIdx.x * 128 + t] = s;
}
VARIANTS1(double_buffer)

// Variant 1 is no data race: all accesses are volatile, thus strong.
PROGRAM(volatile_reduction) {
  __shared__ u b[64];
  volatile u *v = b;
  u t = threadIdx.x;
  if (t >= 32) return;
  v[t] = t;
  v[t + 32] = t;
  if (OK(1)) __syncwarp();
  u a = v[t] + v[t + 32];
  if (OK(1)) __syncwarp();
  v[t] = a;
  __syncwarp();
  if (t == 0) x[blockIdx.x] = v[0] + v[8];
}
VARIANTS1(volatile_reduction)

PROGRAM(warp_reduction) {
  __shared__ u b[32];
  u t = threadIdx.x;
  if (t >= 32) return;
  b[t] = t;
  __syncwarp();
#pragma unroll 1
  for (int o = 16; o; o >>= 1) {
    u a = b[t] + b[t ^ o] + 1;  // fault 2
    if (OK(1) || o != 4) __syncwarp();
    b[t] = a;  // fault 1
    if (OK(2) || o != 8) __syncwarp();
  }
  if (t == 0) x[blockIdx.x] = b[0];
}
VARIANTS2(warp_reduction)

PROGRAM(named_barriers) {
  __shared__ u b[2][32];
  u w = threadIdx.x / 32, l = threadIdx.x % 32;
  if (w == 0) {
#pragma unroll 1
    for (int i = 0; i < 6; i++) {
      if (i >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + (i & 1)) : "memory");
      b[i & 1][l] = i * l + 1;  // fault 1
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + (i & 1)) : "memory");
    }
  } else if (w == 1) {
    u s = 0;
#pragma unroll 1
    for (int i = 0; i < 6; i++) {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + (i & 1)) : "memory");
      s += b[OK(1) ? i & 1 : (i + 1) & 1][31 - l];  // fault 1
      if (i < 4) asm volatile("bar.arrive %0, 64;" ::"r"(3 + (i & 1)) : "memory");
    }
    x[blockIdx.x * 32 + l] = s;
  }
}
VARIANTS1(named_barriers)

PROGRAM(grid_barrier) {
  x[blockIdx.x] = blockIdx.x + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    if (OK(1)) __threadfence();
    atomicAdd(m, 1);
    while (*(volatile u *)m < gridDim.x);
    if (OK(2)) __threadfence();
  }
  __syncthreads();
  u v = x[(blockIdx.x + 1) % gridDim.x];  // fault 1, fault 2
  x[64 + blockIdx.x * 128 + threadIdx.x] = v;
}
VARIANTS2(grid_barrier)

// Variant 1 is no fault: the barrier of the loop's condition already stands between the read and the work.
PROGRAM(stream_k) {
  u state = 0;
  while (__syncthreads_and(state != blockIdx.x)) {
    if (threadIdx.x == 0) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(m) : "memory");
  }
  if (OK(1)) __syncthreads();
  x[threadIdx.x] += threadIdx.x + 1;  // fault 2
  if (OK(2)) __syncthreads();
  if (threadIdx.x == 0) asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(m), "r"(blockIdx.x + 1) : "memory");
}
VARIANTS2(stream_k)

PROGRAM(histogram) {
  __shared__ u h[64];
  for (u i = threadIdx.x; i < 64; i += blockDim.x) h[i] = 0;  // fault 1
  if (OK(1)) __syncthreads();
  atomicAdd(&h[(threadIdx.x * 7) % 64], 1);  // fault 1, fault 2
  if (OK(2)) __syncthreads();
  for (u i = threadIdx.x; i < 64; i += blockDim.x)
    if (h[i]) atomicAdd(x + i, h[i]);  // fault 2
}
VARIANTS2(histogram)

PROGRAM(barrier_phases) {
#pragma nv_diag_suppress 20054  // it is initialised by init()
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ u d[128];
  if (threadIdx.x == 0) init(&b, blockDim.x);
  __syncthreads();
  u s = 0;
#pragma unroll 1
  for (int i = 0; i < 9; i++) {
    d[threadIdx.x] = i * threadIdx.x + 1;  // fault 1
    b.arrive_and_wait();
    s += d[(threadIdx.x + 1) % blockDim.x];  // fault 1
    if (OK(1) || i != 4) b.arrive_and_wait();
  }
  x[blockIdx.x * 128 + threadIdx.x] = s;
}
VARIANTS1(barrier_phases)

PROGRAM(async_stages) {
  __shared__ u d[3][128];
  u t = threadIdx.x, sh = (u)__cvta_generic_to_shared(d);
  for (int i = 0; i < 2; i++) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(sh + i * 512 + t * 4), "l"(m + i * 128 + t) : "memory");
    asm volatile("cp.async.commit_group;");
  }
  u s = 0;
#pragma unroll 1
  for (int i = 0; i < 6; i++) {
    if (OK(1)) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_group 2;" ::: "memory");
    if (OK(2)) __syncthreads();
    s += d[i % 3][(t + 40) % 128];  // fault 1, fault 2, fault 3
    u to = sh + (OK(3) ? (i + 2) % 3 : (i + 1) % 3) * 512 + t * 4;
    if (i < 4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(m + (i + 2) * 128 + t) : "memory");  // fault 2, fault 3
    asm volatile("cp.async.commit_group;");
  }
  x[blockIdx.x * 128 + t] = s;
}
VARIANTS3(async_stages)

#define IN_PAIRS(n) extern "C" __global__ void __cluster_dims__(2, 1, 1) peer_exchange_##n(u *m, u *x) { peer_exchange<n>(m, x); }
PROGRAM(peer_exchange) {
  __shared__ u d[128];
  auto c = cg::this_cluster();
  d[threadIdx.x] = threadIdx.x + c.block_rank() * 1000;  // fault 1
  if (OK(1)) c.sync();
  u *r = c.map_shared_rank(d, c.block_rank() ^ 1);
  u v = r[(threadIdx.x + 5) % 128];  // fault 1, fault 2
  if (OK(2)) c.sync();
  x[blockIdx.x * 128 + threadIdx.x] = v;
}
IN_PAIRS(0) IN_PAIRS(1) IN_PAIRS(2)

PROGRAM(ring) {
  u t = threadIdx.x;
  if (blockIdx.x == 0) {
#pragma unroll 1
    for (u i = 0; i < 5; i++) {
      if (t == 0 && i)
        while (Ref(m[1]).load(acquire) < i);
      __syncthreads();
      x[t] = i * t + 1;  // fault 1, fault 2
      if (OK(1)) __syncthreads();
      if (t == 0) Ref(m[0]).store(i + 1, release);
    }
  } else if (blockIdx.x == 1) {
    u s = 0;
#pragma unroll 1
    for (u i = 0; i < 5; i++) {
      if (t == 0)
        while (Ref(m[0]).load(acquire) <= i);
      if (OK(2)) __syncthreads();
      s += x[(t + 7) % 128];  // fault 1, fault 2
      __syncthreads();
      if (t == 0) Ref(m[1]).store(i + 1, release);
    }
    x[256 + t] = s;
  }
}
VARIANTS2(ring)

PROGRAM(scopes) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    x[0] = 5;
    if (OK(1)) asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(m) : "memory");
    else asm volatile("st.release.cta.u32 [%0], 1;" ::"l"(m) : "memory");  // fault 1
  } else {
    u v;
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(m) : "memory");  // fault 1
    while (!v);
    x[blockIdx.x] = x[0];  // fault 1
  }
}
VARIANTS1(scopes)

PROGRAM(transpose) {
  __shared__ u t[8][9];
  u i = threadIdx.x % 8, j = threadIdx.x / 8 % 8;
  if (threadIdx.x < 64) t[j][i] = m[threadIdx.x] + 1;  // fault 1
  if (OK(1)) __syncthreads();
  if (threadIdx.x < 64) x[blockIdx.x * 64 + threadIdx.x] = t[i][j];  // fault 1
}
VARIANTS1(transpose)

PROGRAM(counter_chain) {  // a release sequence through the atomics of others
  if (threadIdx.x) return;
  x[8 + blockIdx.x] = blockIdx.x + 1;
  u before = Ref(m[0]).fetch_add(1, OK(1) ? acq_rel : relaxed);
  if (before != gridDim.x - 1) return;
  u s = 0;
  for (u b = 0; b < gridDim.x; b++) s += x[8 + b];  // fault 1
  x[0] = s;
}
VARIANTS1(counter_chain)

PROGRAM(block_scan) {
  __shared__ u w[32];
  u t = threadIdx.x, l = t & 31, v = t + 1;
  for (int o = 1; o < 32; o *= 2) {
    u n = __shfl_up_sync(~0u, v, o);
    if (l >= o) v += n;
  }
  if (l == 31) w[t / 32] = v;  // fault 1
  if (OK(1)) __syncthreads();
  if (t < 32) {
    u z = t < blockDim.x / 32 ? w[t] : 0;  // fault 1
    for (int o = 1; o < 32; o *= 2) {
      u n = __shfl_up_sync(~0u, z, o);
      if (l >= o) z += n;
    }
    w[t] = z;  // fault 1, fault 2
  }
  if (OK(2)) __syncthreads();
  if (t >= 32) v += w[t / 32 - 1];  // fault 2
  x[blockIdx.x * 128 + t] = v;
}
VARIANTS2(block_scan)

PROGRAM(once) {
  __shared__ u d, f;
  if (threadIdx.x == 0) f = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    d = x[1023] + 1;
    if (OK(1)) __threadfence_block();
    *(volatile u *)&f = 1;
  }
  if (threadIdx.x < 32) {
    while (*(volatile u *)&f == 0);
    if (OK(2)) __threadfence_block();
    x[blockIdx.x * 32 + threadIdx.x] = d;  // fault 1, fault 2
  }
}
VARIANTS2(once)

PROGRAM(readers_and_writers) {
  if (threadIdx.x) return;
  Ref lock(m[0]);
  if (blockIdx.x % 2) {
    u v;
    do {
      while ((v = lock.load(relaxed)) & 0x80000000u);
    } while (!lock.compare_exchange_weak(v, v + 1, acquire));
    u r = x[0];
    lock.fetch_sub(1, OK(1) ? release : relaxed);
    x[8 + blockIdx.x] = r;
  } else {
    u e = 0;
    while (!lock.compare_exchange_weak(e, 0x80000000u, OK(2) ? acquire : relaxed)) e = 0;
    x[0] += 1;  // fault 1, fault 2
    lock.store(0, release);
  }
}
VARIANTS2(readers_and_writers)
