// Small kernels with simple signatures whose results a few lines of numpy reproduce.
extern "C" __global__ void vector_add(float *c, const float *a, const float *b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }

extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = __fmaf_rn(a, x[i], y[i]); }

extern "C" __global__ void block_sum(float *out, const float *in, int n) {  // block of 256
  __shared__ float s[256]; int t = threadIdx.x, i = blockIdx.x * 256 + t; s[t] = i < n ? in[i] : 0; __syncthreads();
  for (int d = 128; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t == 0) out[blockIdx.x] = s[0];
}

extern "C" __global__ void transpose(float *out, const float *in, int rows, int columns) {  // block 32 x 8
  __shared__ float tile[32][33]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads(); x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void histogram(unsigned *bins, const unsigned char *data, int n) {  // block of 256
  __shared__ unsigned local[256]; local[threadIdx.x] = 0; __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1);
  __syncthreads(); atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

extern "C" __global__ void matmul(float *c, const float *a, const float *b, int n) {  // block 16 x 16, n a multiple of 16
  __shared__ float s[16][16], t[16][16]; int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x; float sum = 0;
  for (int k = 0; k < n; k += 16) { s[y][x] = a[row * n + k + x]; t[y][x] = b[(k + y) * n + column]; __syncthreads();
    for (int j = 0; j < 16; j++) sum = __fmaf_rn(s[y][j], t[j][x], sum); __syncthreads(); }
  c[row * n + column] = sum;
}

extern "C" __global__ void inclusive_scan(int *out, const int *in, int n) {  // one block of up to 1024
  __shared__ int warp_sum[32]; int t = threadIdx.x, lane = t & 31, x = t < n ? in[t] : 0;
  for (int d = 1; d < 32; d <<= 1) { int y = __shfl_up_sync(~0u, x, d); if (lane >= d) x += y; }
  if (lane == 31) warp_sum[t >> 5] = x; __syncthreads();
  int before = 0; for (int w = 0; w < (t >> 5); w++) before += warp_sum[w];
  if (t < n) out[t] = x + before;
}

extern "C" __global__ void softmax(float *out, const float *in, int columns) {  // a block of 128 for each row
  __shared__ float s[128]; const float *row = in + blockIdx.x * columns; int t = threadIdx.x; float m = -3.4e38f, sum = 0;
  for (int i = t; i < columns; i += 128) m = fmaxf(m, row[i]);
  s[t] = m; __syncthreads(); for (int d = 64; d; d >>= 1) { if (t < d) s[t] = fmaxf(s[t], s[t + d]); __syncthreads(); } m = s[0]; __syncthreads();
  for (int i = t; i < columns; i += 128) sum += __expf(row[i] - m);
  s[t] = sum; __syncthreads(); for (int d = 64; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); } sum = s[0];
  for (int i = t; i < columns; i += 128) out[blockIdx.x * columns + i] = __expf(row[i] - m) / sum;
}

extern "C" __global__ void bitonic_sort(unsigned *data) {  // one block of 512
  __shared__ unsigned s[512]; int t = threadIdx.x; s[t] = data[t]; __syncthreads();
  for (int k = 2; k <= 512; k <<= 1) for (int j = k >> 1; j; j >>= 1) { int p = t ^ j; if (p > t) { bool up = !(t & k); if ((s[t] > s[p]) == up) { unsigned x = s[t]; s[t] = s[p]; s[p] = x; } } __syncthreads(); }
  data[t] = s[t];
}

extern "C" __global__ void mandelbrot(int *out, int width, int height, int most) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (x >= width || y >= height) return;
  double cx = -2.0 + 3.0 * x / width, cy = -1.5 + 3.0 * y / height, a = 0, b = 0; int i = 0;
  while (i < most && __dadd_rn(__dmul_rn(a, a), __dmul_rn(b, b)) < 4.0) { double c = __dadd_rn(__dsub_rn(__dmul_rn(a, a), __dmul_rn(b, b)), cx); b = __dadd_rn(__dmul_rn(2.0 * a, b), cy); a = c; i++; }
  out[y * width + x] = i;
}
