// Memory: vectors, cache operators, dynamic shared memory, constants, textures, surfaces, atomics, volatile, unions.
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

__constant__ float weights[16] = {1.f, -2.5f, 3e-8f, 4.f, 0.1f};
__constant__ long long words[3] = {-1, 1ll << 40, 7};
__device__ int counter = 5;
__device__ float4 quad = {1.f, 2.f, 3.f, 4.f};
__device__ const char *message = "hello";
__device__ int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
__managed__ int managed_value = 3;
__device__ int *where = &matrix[1][1];

extern "C" __global__ void vectors(float4 *out, const float4 *__restrict__ in, double2 *d, short4 *s, uchar4 *c) {
  int i = threadIdx.x;
  float4 v = in[i]; v.x += v.w; out[i] = v;
  double2 e = d[i]; d[i] = make_double2(e.y, e.x);
  short4 t = s[i]; s[i] = make_short4(t.w, t.z, t.y, t.x);
  uchar4 u = c[i]; c[i] = make_uchar4(u.y, u.x, u.w, u.z);
}

extern "C" __global__ void caches(int *out, const int *in) {
  int i = threadIdx.x;
  int a = __ldcg(in + i), b = __ldca(in + i + 1), c = __ldcs(in + i + 2), d = __ldlu(in + i + 3), e = __ldcv(in + i + 4);
  __stcg(out + i, a + b); __stcs(out + i + 64, c + d); __stwt(out + i + 128, e + __ldg(in + i));
  volatile int *v = out; v[i + 192] = v[i] + 1; __threadfence(); __threadfence_block(); __threadfence_system();
}

extern "C" __global__ void dynamic_shared(float *data, int n) {
  extern __shared__ float dynamic[];
  __shared__ float fixed[64];
  int i = threadIdx.x;
  dynamic[i] = data[i]; fixed[i & 63] = data[i] * weights[i & 15];
  __syncthreads();
  for (int s = n / 2; s > 0; s >>= 1) { if (i < s) dynamic[i] += dynamic[i + s]; __syncthreads(); }
  if (i == 0) data[0] = dynamic[0] + fixed[3] + words[i];
}

extern "C" __global__ void globals(int *out) {
  out[threadIdx.x] = atomicAdd(&counter, 1) + (int)quad.y + message[threadIdx.x & 3] + matrix[1][threadIdx.x % 3] + managed_value + *where;
}

extern "C" __global__ void textures(float4 *out, cudaTextureObject_t t1, cudaTextureObject_t t2, cudaTextureObject_t t3, cudaSurfaceObject_t s) {
  int i = threadIdx.x;
  float4 a = tex1Dfetch<float4>(t1, i), b = tex2D<float4>(t2, i * .5f, i * .25f), c = tex3D<float4>(t3, .1f, .2f, .3f);
  float4 d = tex2DLayered<float4>(t2, .5f, .5f, 1), e = tex2DLod<float4>(t2, .5f, .5f, 1.f), g = tex2Dgather<float4>(t2, .5f, .5f, 0);
  surf2Dwrite(a, s, i * 16, 0); float4 f = surf2Dread<float4>(s, i * 16, 1);
  out[i] = make_float4(a.x + b.x + e.x, c.y + g.y, d.z, f.w);
}

extern "C" __global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d, __half2 *h, __nv_bfloat16 *b, unsigned short *w) {
  int t = threadIdx.x;
  atomicAdd(i, t); atomicSub(i + 1, t); atomicExch(i + 2, t); atomicMin(i + 3, t); atomicMax(i + 4, t);
  atomicInc(u, 7); atomicDec(u + 1, 7); atomicAnd(u + 2, t); atomicOr(u + 3, t); atomicXor(u + 4, t); atomicMin(u + 5, t);
  i[5] = atomicCAS(i + 6, 0, t); l[0] = atomicCAS(l + 1, 0ull, (unsigned long long)t); atomicAdd(l + 2, 1ull); atomicMax((long long *)(l + 3), -1ll);
  f[1] = atomicAdd(f, 1.5f); atomicAdd(d, 2.5); atomicAdd(h, __floats2half2_rn(1.f, 2.f)); atomicAdd(b, __float2bfloat16(1.f)); w[0] = atomicCAS(w + 1, (unsigned short)0, (unsigned short)t);
  atomicAdd_block(i + 8, 1); atomicAdd_system(i + 9, 1); __shared__ int s[4]; if (t < 4) s[t] = 0; __syncthreads(); atomicAdd(&s[t & 3], t); __syncthreads(); i[10 + (t & 3)] = s[t & 3];
}

union Mixed { double d; unsigned u[2]; unsigned char c[8]; };
extern "C" __global__ void unions(Mixed *m) { Mixed x = m[threadIdx.x]; x.c[3] ^= 0x80; x.u[0] = __brev(x.u[1]); x.d *= 2; m[threadIdx.x] = x; }

struct Parameters { float scale; int n; const float *in; float *out; char pad[40]; };
extern "C" __global__ void by_value(const __grid_constant__ Parameters p) { int i = threadIdx.x; if (i < p.n) p.out[i] = p.in[i] * p.scale + p.pad[i % 40]; }

extern "C" __global__ void address_spaces(int *out, int *p) {
  __shared__ int s[2]; int l[2] = {out[0], out[1]}; int *q = threadIdx.x & 1 ? s : (threadIdx.x & 2 ? l : p);
  out[threadIdx.x] = __isShared(q) + 2 * __isGlobal(q) + 4 * __isLocal(q) + 8 * __isConstant(q) + q[0] + (int)__cvta_generic_to_shared(s);
}
