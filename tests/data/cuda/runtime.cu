// Kernels for NVRTC: a switch, structures by value, functions of libdevice.
struct Parts {
  double v[5];
  int n;
  char c[3];
};

__device__ int tuning = 3;
__constant__ int table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

__device__ __noinline__ int dense(int op, int a, int b) {
  switch (op) {
  case 0: return a + b;
  case 1: return a - b;
  case 2: return a * b;
  case 3: return b ? a / b : 0;
  case 4: return b ? a % b : 0;
  case 5: return a & b;
  case 6: return a | b;
  case 7: return a ^ b;
  case 8: return a << (b & 31);
  case 9: return a >> (b & 31);
  case 10: return min(a, b);
  case 11: return max(a, b);
  case 12: return __mulhi(a, b);
  case 13: return __popc(a) + b;
  case 14: return __clz(a) - b;
  case 15: return __brev(a) ^ b;
  case 16: return table[a & 15];
  case 17: return tuning + a;
  case 18: return a == b;
  case 19: return a < b;
  default: return -1;
  }
}

extern "C" __global__ void switches(const int *op, const int *a, const int *b, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = dense(op[i], a[i], b[i]);
}

__device__ __noinline__ Parts make(int i) {
  Parts p;
  for (int k = 0; k < 5; k++) p.v[k] = i * 1.5 + k;
  p.n = i;
  for (int k = 0; k < 3; k++) p.c[k] = (char)(i + k);
  return p;
}

__device__ __noinline__ double fold(Parts p, float4 w, short2 s, char c, bool odd) {
  double t = 0;
  for (int k = 0; k < p.n % 6; k++) t += p.v[k % 5] * w.x;
  return t + w.w * s.y - s.x + c + (odd ? p.c[1] : p.c[2]);
}

extern "C" __global__ void by_value(double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Parts p = make(i);
  out[i] = fold(p, make_float4(1.f, 2.f, 3.f, .5f), make_short2(-3, i), (char)(i * 7), i & 1);
}

extern "C" __global__ __launch_bounds__(128, 2) void functions(const double *x, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v = x[i];
  out[i * 6] = sin(v);
  out[i * 6 + 1] = exp(v * .01);
  out[i * 6 + 2] = log(fabs(v) + 1);
  out[i * 6 + 3] = pow(fabs(v) + .5, 1.25);
  out[i * 6 + 4] = atan2(v, 2.0);
  out[i * 6 + 5] = (double)sinf((float)v * 100.f);
}
