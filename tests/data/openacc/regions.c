/* Regions of OpenACC: what GCC's back end for PTX makes of them (no library is linked). */
#include <stdint.h>
struct point { double x, y; short tag[3]; };
#pragma acc routine seq
static __attribute__((noinline)) struct point moved(struct point p, float by) { p.x += by; p.y -= by; p.tag[1] = (short)by; return p; }
#pragma acc routine seq
static __attribute__((noinline)) int chosen(int op, int a, int b) {
  switch (op) {
  case 0: return a + b; case 1: return a - b; case 2: return a * b; case 3: return a & b; case 4: return a | b; case 5: return a ^ b;
  case 6: return a << (b & 7); case 7: return a >> (b & 7); case 8: return b ? a / b : 0; case 9: return b ? a % b : 0; default: return -op;
  }
}
#pragma acc routine seq
static __attribute__((noinline)) unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

void saxpy(int n, float a, const float *restrict x, float *restrict y) {
#pragma acc parallel loop copyin(x[:n]) copy(y[:n])
  for (int i = 0; i < n; i++) y[i] += a * x[i];
}
void functions(int n, const int *restrict x, long *restrict out) {
#pragma acc parallel loop gang vector copyin(x[:n]) copyout(out[:n * 6])
  for (int i = 0; i < n; i++) {
    int v = x[i];
    struct point p = {v, i, {1, 2, 3}};
    p = moved(p, v % 10);
    char text[8];
    for (int k = 0; k < 8; k++) text[(k + i) & 7] = (char)(v + k * k);
    uint64_t all = 0;
    for (int k = 7; k >= 0; k--) all = all << 8 | (uint8_t)text[k];
    out[i * 6] = (long)(p.x * 100 + p.y) + p.tag[1];
    out[i * 6 + 1] = chosen(v % 13, v, i);
    out[i * 6 + 2] = fib(i % 9);
    out[i * 6 + 3] = (long)all;
    out[i * 6 + 4] = __builtin_popcount(v) + 100 * __builtin_clz(i + 1) + 10000 * __builtin_ctz(i + 1);
    out[i * 6 + 5] = (long)((__int128)v * 0x123456789abcdef0LL >> 40);
  }
}
void sums(int n, int m, const double *restrict x, double *restrict out) {
#pragma acc parallel loop gang copyin(x[:n * m]) copyout(out[:n])
  for (int i = 0; i < n; i++) {
    double sum = 0, most = -1e300;
#pragma acc loop worker vector reduction(+: sum) reduction(max: most)
    for (int k = 0; k < m; k++) { double v = x[i * m + k]; sum += v; if (v > most) most = v; }
    out[i] = sum * 1000 + most;
  }
}
void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
#pragma acc parallel loop gang copyin(a[:n * n], b[:n * n]) copyout(c[:n * n])
  for (int i = 0; i < n; i++) {
#pragma acc loop worker
    for (int j = 0; j < n; j++) {
      float t = 0;
#pragma acc loop vector reduction(+: t)
      for (int k = 0; k < n; k++) t += a[i * n + k] * b[k * n + j];
      c[i * n + j] = t;
    }
  }
}
void total(int n, const long *restrict x, long *restrict out) {
  long sum = 0; long product = 1; int odd = 0;
#pragma acc parallel loop gang worker vector copyin(x[:n]) reduction(+: sum) reduction(^: odd) reduction(max: product) copy(sum, odd, product)
  for (int i = 0; i < n; i++) { sum += x[i]; odd ^= (int)x[i]; product = product > x[i] ? product : x[i]; }
  out[0] = sum; out[1] = product; out[2] = odd;
}
/* Vectors in registers. */
typedef long two_longs __attribute__((vector_size(16)));
typedef int two_ints __attribute__((vector_size(8)));
void pairs(int n, const two_longs *restrict x, two_longs *restrict out, two_ints *restrict small) {
#pragma acc parallel loop copyin(x[:n]) copyout(out[:n], small[:n])
  for (int i = 0; i < n; i++) {
    two_longs v = x[i];
    v[1] += i;
    out[i] = v;
    two_ints w = {(int)v[0], i};
    small[i] = w;
  }
}

int main(void) { return 0; }
