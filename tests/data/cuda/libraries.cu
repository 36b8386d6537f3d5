// The libraries that come with nvcc (cub, cooperative groups, libcu++, libdevice); SMALL leaves out what makes much debug code.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <mma.h>
namespace cg = cooperative_groups;

#ifndef SMALL
extern "C" __global__ void radix_sort(unsigned *keys, int *values) {  // one block of 128, 4 items each
    using Sort = cub::BlockRadixSort<unsigned, 128, 4, int>;
    __shared__ typename Sort::TempStorage temp;
    unsigned k[4]; int v[4];
    for (int i = 0; i < 4; i++) k[i] = keys[threadIdx.x * 4 + i], v[i] = values[threadIdx.x * 4 + i];
    Sort(temp).Sort(k, v);
    for (int i = 0; i < 4; i++) keys[threadIdx.x * 4 + i] = k[i], values[threadIdx.x * 4 + i] = v[i];
}
extern "C" __global__ void scans(int *out, const int *in, double *sum) {  // one block of 128
    using Scan = cub::BlockScan<int, 128>; using Reduce = cub::BlockReduce<double, 128>; using Merge = cub::WarpMergeSort<int, 2, 32>;
    __shared__ union { typename Scan::TempStorage scan; typename Reduce::TempStorage reduce; typename Merge::TempStorage merge[4]; } temp;
    int x = in[threadIdx.x], total, y;
    Scan(temp.scan).ExclusiveSum(x, y, total);
    __syncthreads();
    double s = Reduce(temp.reduce).Reduce(sqrt((double)x * x + 1), [](double a, double b) { return a > b ? a : b; });
    if (threadIdx.x == 0) *sum = s + total;
    __syncthreads();
    int pair[2] = {x, -x};
    Merge(temp.merge[threadIdx.x / 32]).Sort(pair, [](int a, int b) { return a < b; });
    out[threadIdx.x] = y; out[128 + 2 * threadIdx.x] = pair[0]; out[129 + 2 * threadIdx.x] = pair[1];
}
#endif
extern "C" __global__ void group_work(int *out, const int *in) {  // one block of 128
    auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<16>(block);
    int x = in[threadIdx.x];
    out[threadIdx.x] = cg::reduce(tile, x, cg::plus<int>());
    out[128 + threadIdx.x] = cg::inclusive_scan(tile, x, cg::plus<int>());
    if (x & 1) { auto few = cg::coalesced_threads(); out[256 + threadIdx.x] = few.thread_rank() * 100 + few.size(); }
    else { auto same = cg::labeled_partition(cg::coalesced_threads(), x & 6); out[256 + threadIdx.x] = -(int)(same.thread_rank() * 100 + same.size()); }
    auto by = cg::labeled_partition(cg::tiled_partition<32>(block), x % 3);
    out[384 + threadIdx.x] = cg::reduce(by, x, cg::greater<int>());
}
extern "C" __global__ void pipelined(float *out, const float *in, int n) {  // one block of 64: sums of columns through a 2-stage pipeline
    __shared__ float stage[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    float s = 0;
    for (int i = 0, f = 0; i < n; i++) {
        for (; f < n && f < i + 2; f++) { pipe.producer_acquire(); cuda::memcpy_async(block, stage[f % 2], in + f * 64, cuda::aligned_size_t<16>(256), pipe); pipe.producer_commit(); }
        pipe.consumer_wait(); s += stage[i % 2][63 - threadIdx.x]; pipe.consumer_release();
    }
    out[threadIdx.x] = s;
}
#ifndef SMALL
extern "C" __global__ void barriers(int *out, const int *in) {  // one block of 64
    using B = cuda::barrier<cuda::thread_scope_block>;
    __shared__ B b; __shared__ int data[64];
    if (threadIdx.x == 0) init(&b, 64);
    __syncthreads();
    cuda::memcpy_async(data + threadIdx.x, in + threadIdx.x, sizeof(int), b);
    auto token = b.arrive(); b.wait(std::move(token));
    int x = data[threadIdx.x ^ 33];
    b.arrive_and_wait();
    data[threadIdx.x] = x * 2;
    b.arrive_and_wait();
    out[threadIdx.x] = data[63 - threadIdx.x];
}
extern "C" __global__ void orders(int *out, unsigned *ticket, int *box) {  // blocks of 32: message passing in ticket order
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> t(*ticket);
    if (threadIdx.x == 0) {
        while (t.load(cuda::memory_order_acquire) != blockIdx.x) __nanosleep(10);
        *box = *box * 3 + blockIdx.x; out[blockIdx.x] = *box;
        t.store(blockIdx.x + 1, cuda::memory_order_release);
    }
    cuda::atomic_ref<int, cuda::thread_scope_system> m(out[gridDim.x]);
    m.fetch_max((int)(threadIdx.x * 7 % 32) + (int)blockIdx.x, cuda::memory_order_relaxed);
    cuda::atomic_ref<int> c(out[gridDim.x + 1]);
    int old = c.load(); while (!c.compare_exchange_weak(old, old ^ (1 << (threadIdx.x & 15)) + 1)) {}
}
extern "C" __global__ void special(double *out, const double *in) {  // one block of 32
    double x = in[threadIdx.x]; double *o = out + threadIdx.x;
    o[0] = sin(x * 100); o[32] = cos(x * 1e6); o[64] = exp(x); o[96] = log1p(fabs(x)); o[128] = erf(x); o[160] = tgamma(fabs(x) + .5); o[192] = pow(fabs(x), x);
    o[224] = cbrt(x); o[256] = atan2(x, 2.0); o[288] = hypot(x, 3.0); o[320] = fmod(x * 10, .7); o[352] = j0(x); o[384] = normcdf(x); o[416] = rsqrt(fabs(x)); o[448] = remainder(x * 9, .9); o[480] = rint(x * 5);
    float f = (float)x; o[512] = sinf(f * 1000); o[544] = tanhf(f); o[576] = expm1f(f); o[608] = lgammaf(fabsf(f) + 1); o[640] = powf(fabsf(f), 1.7f); o[672] = asinhf(f); o[704] = erfcinvf(fabsf(f) / 4 + .01f); o[736] = fmaf(f, f, 1);
}
extern "C" __global__ void wmma_bf16(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b) {  // one warp: 16 x 16 x 32
    using namespace nvcuda::wmma;
    fragment<accumulator, 16, 16, 16, float> acc; fill_fragment(acc, 1.0f);
    for (int k = 0; k < 32; k += 16) {
        fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> fa; fragment<matrix_b, 16, 16, 16, __nv_bfloat16, col_major> fb;
        load_matrix_sync(fa, a + k, 32); load_matrix_sync(fb, b + k, 32); mma_sync(acc, fa, fb, acc);
    }
    for (int i = 0; i < acc.num_elements; i++) acc.x[i] *= 2;
    store_matrix_sync(c, acc, 16, mem_col_major);
}
#endif
struct Node { int value; Node *left, *right; };
__device__ int depth(const Node *n) { return n ? 1 + max(depth(n->left), depth(n->right)) : 0; }
__device__ __noinline__ float apply(float (*f)(float), float x) { return f(x); }
__device__ float twice(float x) { return 2 * x; } __device__ float square(float x) { return x * x; }
extern "C" __global__ void trees(int *out, const int *parents, Node *nodes, int n, float *f) {  // one thread builds, 32 threads walk
    if (threadIdx.x == 0)
        for (int i = 0; i < n; i++) { nodes[i] = {i, nullptr, nullptr}; if (i) { Node &p = nodes[parents[i]]; (p.left ? p.right : p.left) = &nodes[i]; } }
    __syncwarp();
    out[threadIdx.x] = threadIdx.x < n ? depth(&nodes[threadIdx.x]) : -1;
    f[threadIdx.x] = apply(threadIdx.x % 3 ? twice : square, f[threadIdx.x]);
    int big[40]; for (int i = 0; i < 40; i++) big[(i * 7 + threadIdx.x) % 40] = i;
    out[32 + threadIdx.x] = big[out[threadIdx.x] & 31];
}
#ifndef SMALL
extern "C" __global__ void small_types(unsigned char *e4, __half2 *h, int *dot, const float *in, const int *a, const int *b, long long *w) {  // one block of 32
    int t = threadIdx.x;
    __nv_fp8_e4m3 q(in[t]); e4[t] = q.__x; h[t] = __hfma2(__float2half2_rn(in[t]), __floats2half2_rn(2, 3), __half2(__half(float(q)), __half(1)));
    dot[t] = __dp4a(a[t], b[t], 5); dot[32 + t] = __funnelshift_l(a[t], b[t], t); dot[64 + t] = __vabsdiffu4(a[t], b[t]); dot[96 + t] = __byte_perm(a[t], b[t], 0x5142) ^ __brev(a[t]) ^ __popc(b[t]) ^ __ffs(a[t]) ^ __clz(b[t]);
    dot[128 + t] = __vmaxs2(a[t], b[t]) + __vaddus4(a[t], b[t]) + __sad(a[t], b[t], 3); dot[160 + t] = __usad(a[t], b[t], 1) + __mulhi(a[t], b[t]) + __rhadd(a[t], b[t]);
    w[t] = (long long)a[t] * b[t] / (t + 1) + __mul64hi((long long)a[t] << 20, (long long)b[t] << 30) + (long long)a[t] % (b[t] | 1);
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(int *bins, const unsigned char *in, int n) {  // blocks of 64, 32 bins over two blocks
    __shared__ int part[16];
    auto cluster = cg::this_cluster();
    if (threadIdx.x < 16) part[threadIdx.x] = 0;
    cluster.sync();
    for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) { int bin = in[i] % 32; atomicAdd(cluster.map_shared_rank(part, bin / 16) + bin % 16, 1); }
    cluster.sync();
    if (threadIdx.x < 16) atomicAdd(bins + cluster.block_rank() * 16 + threadIdx.x, part[threadIdx.x]);
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_no_end(int *out) {  // a fault: the peer may have ended
    __shared__ int mine[32];
    auto cluster = cg::this_cluster();
    mine[threadIdx.x] = threadIdx.x + cluster.block_rank();
    cluster.sync();
    out[cluster.thread_rank()] = cluster.map_shared_rank(mine, 1 - cluster.block_rank())[threadIdx.x];
}
#endif
#endif
