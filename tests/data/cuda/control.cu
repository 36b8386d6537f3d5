// Control flow and calls: switch tables, recursion, function pointers, virtual functions, printf, local arrays, loops.
#include <cstdio>

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int thrice(int x) { return 3 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
typedef int (*unary)(int);
__device__ unary table[3] = {twice, thrice, square};

struct Big { double a[5]; int n; char tag; };
__device__ __noinline__ Big widen(Big b, int k) { for (int i = 0; i < 5; i++) b.a[i] += k; b.n++; b.tag ^= 1; return b; }

struct Shape { __device__ virtual float area() const = 0; __device__ virtual ~Shape() {} };
struct Square : Shape { float s; __device__ Square(float x) : s(x) {} __device__ float area() const override { return s * s; } };
struct Circle : Shape { float r; __device__ Circle(float x) : r(x) {} __device__ float area() const override { return 3.14159f * r * r; } };

extern "C" __global__ void recursion(int *out, int n) { out[threadIdx.x] = fibonacci(threadIdx.x % n); }

extern "C" __global__ void pointers(int *out, int which) { out[threadIdx.x] = table[which](threadIdx.x); }

extern "C" __global__ void structs(double *out, int n) {
  Big b; for (int i = 0; i < 5; i++) b.a[i] = i; b.n = n; b.tag = 'x';
  b = widen(b, threadIdx.x); out[threadIdx.x] = b.a[n % 5] + b.n + b.tag;
}

extern "C" __global__ void virtuals(float *out, int n) {
  Square s(threadIdx.x); Circle c(threadIdx.x);
  const Shape *p = (threadIdx.x ^ n) & 1 ? (const Shape *)&s : (const Shape *)&c;
  out[threadIdx.x] = p->area();
}

extern "C" __global__ void switches(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  switch (n) {
    case 0: x = sinf(x); break;
    case 1: x = x * x + 1.0f; break;
    case 2: x = -x; break;
    case 3: x = sqrtf(x); break;
    case 4: x = 1.0f / x; break;
    case 5: x = exp2f(x); break;
    case 6: x = x > 0 ? x : 0.01f * x; break;
    case 7: x = rintf(x); break;
    default: x = 0;
  }
  out[i] = x;
}

extern "C" __global__ void local_array(int *out, const int *index, int n) {
  int scratch[32];
  for (int i = 0; i < 32; i++) scratch[i] = i * n + threadIdx.x;
  for (int i = 0; i < n; i++) { int j = index[i] & 31; int t = scratch[j]; scratch[j] = scratch[31 - j]; scratch[31 - j] = t; }
  out[threadIdx.x] = scratch[index[threadIdx.x] & 31];
}

extern "C" __global__ void hello(int n) {
  if (threadIdx.x < n) printf("thread %d of %d: %f %s\n", threadIdx.x, n, 0.5 * threadIdx.x, "text");
}

extern "C" __global__ void collatz(unsigned *steps, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long x = i + 1; unsigned s = 0;
  while (x != 1) { if (s > 1000) break; if (x & 1) x = 3 * x + 1; else x >>= 1; s++; }
  steps[i] = s;
}

extern "C" __global__ void trap_if(int *p) { if (*p < 0) __trap(); if (*p == 7) __brkpt(); __nanosleep(20); *p = clock() != 0; }
extern "C" __global__ void heap(int **out, int n) { int *p = (int *)malloc(n * sizeof(int)); if (p) { p[0] = n; out[threadIdx.x] = p; } else free(p); }
