// What C++ makes of functions and objects: tables of functions, dynamic types, the heap, alloca, lambdas, printf, assert.
#include <cassert>
#include <cstdio>
#include <cuda/std/array>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>

__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__device__ __noinline__ int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void mutual_recursion(int *out) {
  int t = threadIdx.x;
  out[t] = even(t % 9) + 10 * ackermann(t & 1, t % 4);
}

struct Animal {
  __device__ virtual int legs(int bias) const { return bias; }
  __device__ virtual ~Animal() {}
};
struct Sound {
  int pitch;
  __device__ virtual int sing(int n) { return pitch * n; }
};
struct Bird : Animal, Sound {
  int age;
  __device__ int legs(int bias) const override { return 2 + bias; }
  __device__ int sing(int n) override { return pitch + n + age; }
};
struct Cricket final : Bird {
  __device__ int legs(int bias) const override { return 6 + Bird::legs(bias); }
};
extern "C" __global__ void dynamic_types(int *out, int n) {  // objects on the heap, called through both bases
  int t = threadIdx.x;
  Bird *b = (t + n) % 3 ? new Bird : new Cricket;
  b->pitch = t, b->age = 100;
  Animal *a = b;
  Sound *s = b;
  out[t] = a->legs(n) * 1000 + s->sing(5);
  delete a;
}

struct Link { int value; Link *next; };
extern "C" __global__ void linked_list(int *out, int n) {  // every thread builds, reverses and frees its own list
  Link *head = nullptr;
  for (int i = 0; i < n + (int)threadIdx.x % 3; i++) head = new Link{i * (int)threadIdx.x, head};
  Link *back = nullptr;
  while (head) { Link *next = head->next; head->next = back; back = head; head = next; }
  int sum = 0;
  for (int i = 1; back; i++) { sum += i * back->value; Link *next = back->next; delete back; back = next; }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void stack_memory(int *out, int n) {  // alloca of a size that each thread has its own
  int size = 1 + (threadIdx.x + n) % 7, sum = 0;
  int *p = (int *)alloca(size * sizeof(int));
  for (int i = 0; i < size; i++) p[i] = i * i + threadIdx.x;
  for (int i = 0; i < size; i++) sum = sum * 3 + p[size - 1 - i];
  out[threadIdx.x] = sum;
}

template <typename F> __device__ __noinline__ int apply(F f, int x) { return f(x); }
template <typename... T> __device__ int total(T... values) { return (0 + ... + values); }
extern "C" __global__ void lambdas(int *out, int k) {
  int t = threadIdx.x;
  auto scale = [k, t](int x) { return k * x + t; };
  cuda::std::array<int, 4> a{t, t + 1, t + 2, t + 3};
  cuda::std::span<int> s(a);
  cuda::std::optional<int> o = t & 1 ? cuda::std::optional<int>(7) : cuda::std::nullopt;
  auto [x, y] = cuda::std::make_tuple(s[1] * 2, o.value_or(-1));
  out[t] = apply(scale, x) + total(y, s.size(), a[t & 3], apply([](int v) { return v >> 1; }, t));
}

typedef float (*binary)(float, float);
struct Operation { binary run; int times; };
__device__ float plus(float a, float b) { return a + b; }
__device__ float times(float a, float b) { return a * b; }
__device__ __noinline__ float less(float a, float b) { return a < b ? a : b; }
extern "C" __global__ void operations(Operation *box, float *x, int step) {  // pointers to functions travel through memory
  int t = threadIdx.x;
  if (step == 0) { box[t] = Operation{t % 3 == 0 ? plus : t % 3 == 1 ? times : less, t & 3}; return; }
  for (int i = 0; i < box[t].times; i++) x[t] = box[t].run(x[t], 1.25f);
}

extern "C" __global__ void report(const int *n, double d) {  // every conversion of printf
  __shared__ char shared_text[6];
  char local_text[4] = {'l', 'o', (char)('a' + n[0]), 0};
  for (int i = threadIdx.x; i < 6; i += blockDim.x) shared_text[i] = "share"[i];
  __syncthreads();
  if (threadIdx.x == 1) {
    printf("%d %i %u %x %X %o %c|%5d|%-5d|%05d|%+d|% d|%#x|%#o\n", n[0], n[1], n[1], n[1], n[2], n[2], 'q', n[2], n[2], n[2], n[2], n[2], n[2], n[2]);
    printf("%hd %hhd %hu %hhu %ld %lld %lu %llx\n", n[1], n[1], n[1], n[1], (long)n[1], 1ll << 40, (unsigned long)n[1], -1ll);
    printf("%f %.3f %10.2e %g %G %a %F %E|%-12.4f|%+.0f\n", d, d, d, d, 1e-7 * d, d, d, d, d, d);
    printf("%s %s %s %10s|%-8s|%.2s %p %%\n", shared_text, local_text, "constant", "right", "left", "cut", (void *)nullptr);
    printf("%*d|%-*d|%.*f no arguments\n", 6, n[2], 6, n[2], 2, d);
    printf("plain\n");
  }
  if (threadIdx.x < 3) printf("%d of %d: %f\n", (int)threadIdx.x, (int)blockDim.x, (float)threadIdx.x * .5f);
}

extern "C" __global__ void checked(int *out, int n) {
  int t = threadIdx.x;
  assert(t < n && "more threads than expected");
  out[t] = t;
}
