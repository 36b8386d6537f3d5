// Numbers: 128-bit integers, bit fields, libdevice functions of floats and doubles, halves, complex numbers, fixed formats.
#include <cuda/std/complex>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

extern "C" __global__ void int128(wide *out, const wide *a, const wide *b) {  // n results of each kind, one after the other
  int i = threadIdx.x, n = blockDim.x;
  wide x = a[i], y = b[i];
  out[i] = x * y;
  out[n + i] = x / y;
  out[2 * n + i] = x % y;
  out[3 * n + i] = (wide)((unsigned_wide)x / (unsigned_wide)y);
  out[4 * n + i] = (x << (i & 127)) ^ (y >> (i * 3 & 127));
  out[5 * n + i] = x < y ? -x : ~y;
  out[6 * n + i] = (wide)(double)x + (long long)y;
}

struct Packed {
  unsigned a : 3;
  int b : 7;
  unsigned c : 13;
  long long d : 41;
  bool e : 1;
  unsigned short f;
};
extern "C" __global__ void bit_fields(Packed *p, long long *out) {
  Packed x = p[threadIdx.x];
  out[threadIdx.x] = x.a + 10ll * x.b + 100000ll * x.c + x.d + x.e;
  x.a += 3;
  x.b -= 5;
  x.c ^= 0x155;
  x.d *= 3;
  x.e = !x.e;
  p[threadIdx.x] = x;
}

extern "C" __global__ void floats_of_libdevice(float *o, const float *a, const float *b) {
  int i = threadIdx.x, n = blockDim.x;
  float x = a[i], y = b[i], s, c, whole;
  int e;
  o += i;
  sincosf(x, &s, &c), o[0] = s, o[n] = c;
  o[2 * n] = tanf(x), o[3 * n] = asinf(x / 8), o[4 * n] = acosf(x / 8), o[5 * n] = atan2f(x, y);
  o[6 * n] = sinhf(x), o[7 * n] = acoshf(1 + fabsf(x)), o[8 * n] = atanhf(x / 8), o[9 * n] = exp10f(x);
  o[10 * n] = log10f(fabsf(y)), o[11 * n] = log2f(fabsf(y)), o[12 * n] = logbf(y), o[13 * n] = hypotf(x, y);
  o[14 * n] = remainderf(x * 50, y), o[15 * n] = fmodf(x * 1e6f, y), o[16 * n] = nextafterf(x, y), o[17 * n] = fdimf(x, y);
  o[18 * n] = erfcf(x), o[19 * n] = erfinvf(x / 8), o[20 * n] = tgammaf(fabsf(x) + 1), o[21 * n] = j1f(x), o[22 * n] = y0f(fabsf(y) + 1);
  o[23 * n] = frexpf(x, &e) + e, o[24 * n] = ldexpf(x, 3), o[25 * n] = modff(x * 7, &whole) + whole, o[26 * n] = rcbrtf(x);
  o[27 * n] = norm3df(x, y, 2), o[28 * n] = sinpif(x), o[29 * n] = cospif(y), o[30 * n] = powf(x, 3), o[31 * n] = ilogbf(y);
  o[32 * n] = sinf(x * 1e7f), o[33 * n] = lrintf(x * 9), o[34 * n] = cyl_bessel_i0f(x), o[35 * n] = normcdff(x);
}

extern "C" __global__ void doubles_of_libdevice(double *o, const double *a, const double *b) {
  int i = threadIdx.x, n = blockDim.x;
  double x = a[i], y = b[i], s, c;
  o += i;
  sincos(x, &s, &c), o[0] = s, o[n] = c;
  o[2 * n] = tan(x), o[3 * n] = asin(x / 8), o[4 * n] = acos(x / 8), o[5 * n] = atan(x);
  o[6 * n] = sinh(x), o[7 * n] = cosh(x), o[8 * n] = tanh(x), o[9 * n] = asinh(x), o[10 * n] = acosh(1 + fabs(x)), o[11 * n] = atanh(x / 8);
  o[12 * n] = exp2(x), o[13 * n] = exp10(x), o[14 * n] = expm1(x), o[15 * n] = log(fabs(y)), o[16 * n] = log2(fabs(y)), o[17 * n] = log10(fabs(y));
  o[18 * n] = erfc(x), o[19 * n] = lgamma(fabs(x) + .5), o[20 * n] = erfinv(x / 8), o[21 * n] = fmod(x * 1e9, y), o[22 * n] = remainder(x * 99, y);
  o[23 * n] = sqrt(fabs(x)), o[24 * n] = rcbrt(x), o[25 * n] = x / y, o[26 * n] = round(x * 5), o[27 * n] = scalbn(x, -4), o[28 * n] = nextafter(x, y);
  o[29 * n] = sin(x * 1e15), o[30 * n] = pow(fabs(y), x), o[31 * n] = nearbyint(x * 7), o[32 * n] = __dsqrt_ru(fabs(x)), o[33 * n] = __ddiv_rd(x, y);
}

extern "C" __global__ void half_math(__half *o, const __half *a, __nv_bfloat16 *p, const __nv_bfloat16 *b) {
  int i = threadIdx.x, n = blockDim.x;
  __half x = a[i];
  __nv_bfloat16 z = b[i];
  o += i, p += i;
  o[0] = hsin(x), o[n] = hcos(x), o[2 * n] = hexp(x), o[3 * n] = hlog(__habs(x)), o[4 * n] = hrcp(x), o[5 * n] = hrsqrt(__habs(x));
  o[6 * n] = hfloor(x), o[7 * n] = hrint(x), o[8 * n] = hlog2(__habs(x)), o[9 * n] = hexp10(x), o[10 * n] = x / (x + __half(1.5f)), o[11 * n] = __hfma_sat(x, x, x);
  p[0] = hsin(z), p[n] = hexp2(z), p[2 * n] = hlog(__habs(z)), p[3 * n] = hsqrt(__habs(z)), p[4 * n] = z / __nv_bfloat16(3.f), p[5 * n] = __hmax_nan(z, __hneg(z));
}

extern "C" __global__ void complex_numbers(cuda::std::complex<float> *f, cuda::std::complex<double> *d) {
  auto x = f[threadIdx.x];
  f[threadIdx.x] = x * x / (x + cuda::std::complex<float>(1, 2)) + cuda::std::conj(x) * cuda::std::abs(x);
  auto y = d[threadIdx.x];
  d[threadIdx.x] = cuda::std::exp(y) + cuda::std::sqrt(y) * cuda::std::log(y) / y;
}
