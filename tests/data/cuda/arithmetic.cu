// Arithmetic: integers, floats, doubles, halves, bfloats, fp8, conversions, bit twiddling, dot products, templates.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern "C" __global__ void integers(int *o, const int *a, const int *b, long long *l, unsigned *u, short *s, unsigned char *c) {
  int i = threadIdx.x, x = a[i], y = b[i];
  o[i] = x + y * 3 - x / 7 + x % 5 + (x << (y & 31)) + (x >> 2) + (x & y) + (x | y) + (x ^ y) + ~x + -y + min(x, y) + max(x, y) + abs(x);
  o[i + 32] = __mulhi(x, y) + __mul24(x, y) + __sad(x, y, 3) + __popc(x) + __clz(x) + __ffs(x) + __brev(x) + __byte_perm(x, y, 0x5410) + __funnelshift_l(x, y, 7) + __dp4a(x, y, 1) + __dp2a_lo(x, y, 2);
  l[i] = (long long)x * y + (l[i] >> 3) / 11 + __clzll(l[i]) + __popcll(l[i]) + __mul64hi(l[i], x) + (l[i] < y);
  u[i] = u[i] / 3u + u[i] % 10u + __umulhi(u[i], 7u) + __vadd4(u[i], x) + __vabsdiffu4(u[i], y) + __vmaxs2(u[i], x) + __viaddmax_s32(x, y, 3) + __viaddmin_s16x2(x, y, 4);
  s[i] = s[i] * 3 + (short)x; c[i] = c[i] * 5 + (unsigned char)(y >> 3);
}

extern "C" __global__ void floats(float *o, const float *a, const float *b) {
  int i = threadIdx.x; float x = a[i], y = b[i];
  o[i] = x + y * x - x / y + sqrtf(x) + rsqrtf(y) + fabsf(x) + fminf(x, y) + fmaxf(x, y) + floorf(x) + ceilf(y) + truncf(x) + roundf(y) + copysignf(x, y) + fmodf(x, y);
  o[i + 32] = sinf(x) + cosf(y) + expf(x) + logf(y) + powf(x, y) + tanhf(x) + erff(y) + __sinf(x) + __expf(y) + __logf(x) + __fdividef(x, y) + __saturatef(x) + cbrtf(y);
  o[i + 64] = __fadd_rd(x, y) + __fmul_ru(x, y) + __fmaf_rz(x, y, 1.f) + __frcp_rn(x) + __fsqrt_rd(y) + __fdiv_ru(x, y) + (isnan(x) ? 1.f : 2.f) + (isinf(y) ? 1.f : 2.f) + (x < y) + (x == y) + (x >= y) + (x != y);
}

extern "C" __global__ void doubles(double *o, const double *a, float *f, int n) {
  int i = threadIdx.x; double x = a[i];
  o[i] = x * x + sqrt(x) / (x + 1) + sin(x) + exp(-x) + log(x + 2) + pow(x, 1.5) + fma(x, x, 3.0) + floor(x) + (int)x + (long long)x + (unsigned)x + n + __drcp_rn(x) + tgamma(x);
  f[i] = (float)x + __double2float_rd(x) + __double2hiint(x) + __double2loint(x) + __int_as_float(n) + __hiloint2double(n, i);
}

extern "C" __global__ void halves(__half *h, __half2 *h2, __nv_bfloat16 *b, __nv_bfloat162 *b2, float *f) {
  int i = threadIdx.x;
  __half x = h[i]; h[i] = __hadd(x, __hmul(x, x)) + hsqrt(x) + hexp2(x) + __float2half(f[i]) + __int2half_rn(i) + (x > __half(1.f) ? x : __half(2.f)) + htanh(x);
  __half2 y = h2[i]; h2[i] = __hfma2(y, y, __hadd2(y, y)) ; h2[i + 32] = __hmax2(y, __hneg2(y)) + __lows2half2(y, h2[i]) + __hfma2_relu(y, y, y);
  __nv_bfloat16 z = b[i]; b[i] = z * z + __float2bfloat16(f[i]) + hexp(z); __nv_bfloat162 w = b2[i]; b2[i] = __hadd2(__hfma2(w, w, w), __hmin2(w, w));
  f[i] = __half2float(x) + __bfloat162float(z) + __low2float(y) + __high2float(w) + (__hgt(x, x) ? 1 : 0) + (__hbne2(y, y) ? 1 : 0);
}

extern "C" __global__ void conversions(unsigned char *o8, short *o16, int *o32, float *f, double *d, __nv_fp8_e4m3 *e4, __nv_fp8_e5m2 *e5) {
  int i = threadIdx.x; float x = f[i]; double y = d[i];
  o8[i] = (unsigned char)x; o16[i] = (short)y; o32[i] = __float2int_rn(x) + __float2int_rd(x) + __float2uint_ru(x) + __double2int_rz(y) + (int)__float2ll_rn(x) + (int)__float_as_uint(x);
  f[i] = (float)o8[i] + (float)o16[i] + (float)o32[i] + (float)(long long)y + __uint2float_rd(o32[i]) + (float)e4[i] + (float)e5[i]; d[i] = o32[i] + (double)x;
  e4[i] = __nv_fp8_e4m3(x); e5[i] = __nv_fp8_e5m2(y);
}

template <typename T, int N> __device__ T polynomial(T x, const T (&c)[N]) { T r = c[0]; 
#pragma unroll
  for (int i = 1; i < N; i++) r = r * x + c[i]; return r; }
template <typename T> __global__ void horner(T *o, const T *x) { const T c[5] = {T(1), T(2), T(3), T(4), T(5)}; o[threadIdx.x] = polynomial(x[threadIdx.x], c); }
template __global__ void horner<float>(float *, const float *);
template __global__ void horner<double>(double *, const double *);
template __global__ void horner<int>(int *, const int *);
template __global__ void horner<long long>(long long *, const long long *);
