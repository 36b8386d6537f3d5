// Algorithms that stress scheduling: register tiles, merges, chained scans between CTAs, locks, dynamic shared memory.
extern "C" __global__ void __launch_bounds__(256) sgemm(float *c, const float *a, const float *b, int m, int n, int k) {  // tiles of 64 x 64, 256 threads
  __shared__ float s[16][68], t[16][64]; int x = threadIdx.x & 15, y = threadIdx.x >> 4, row = blockIdx.y * 64, column = blockIdx.x * 64; float sum[4][4] = {};
  for (int at = 0; at < k; at += 16) {
    for (int i = threadIdx.x; i < 1024; i += 256) { s[i & 15][i >> 4] = a[(row + (i >> 4)) * k + at + (i & 15)]; t[i >> 6][i & 63] = b[(at + (i >> 6)) * n + column + (i & 63)]; }
    __syncthreads();
    for (int j = 0; j < 16; j++) { float p[4], q[4];
      for (int i = 0; i < 4; i++) { p[i] = s[j][4 * y + i]; q[i] = t[j][4 * x + i]; }
      for (int i = 0; i < 4; i++) for (int l = 0; l < 4; l++) sum[i][l] = __fmaf_rn(p[i], q[l], sum[i][l]); }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++) *(float4 *)&c[(row + 4 * y + i) * n + column + 4 * x] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}

extern "C" __global__ void nbody(float4 *force, const float4 *body, int n) {  // blocks of 128, dynamic shared memory of 128 float4
  extern __shared__ float4 tile[]; int i = blockIdx.x * 128 + threadIdx.x; float4 me = body[i < n ? i : 0]; float fx = 0, fy = 0, fz = 0;
  for (int at = 0; at < n; at += 128) { int j = at + threadIdx.x; tile[threadIdx.x] = j < n ? body[j] : make_float4(0, 0, 0, 0); __syncthreads();
    for (int l = 0; l < 128; l++) { float4 o = tile[l]; float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z, r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = o.w * r * r * r; fx += f * dx; fy += f * dy; fz += f * dz; }
    __syncthreads(); }
  if (i < n) force[i] = make_float4(fx, fy, fz, 0);
}

extern "C" __global__ void merge_sort(int *data, int n) {  // one block of 256, n = 1024: every thread merges by rank
  __shared__ int s[1024], t[1024]; for (int i = threadIdx.x; i < n; i += 256) s[i] = data[i]; __syncthreads();
  int *from = s, *to = t;
  for (int run = 1; run < n; run <<= 1) {
    for (int i = threadIdx.x; i < n; i += 256) { int mine = i / run, start = (mine ^ 1) * run, low = 0, high = run; int v = from[i]; bool left = !(mine & 1);
      while (low < high) { int mid = (low + high) >> 1; int w = from[start + mid]; if (left ? w < v : w <= v) low = mid + 1; else high = mid; }
      to[(mine & ~1) * run + i % run + low] = v; }
    __syncthreads(); int *x = from; from = to; to = x; }
  for (int i = threadIdx.x; i < n; i += 256) data[i] = from[i];
}

extern "C" __global__ void chained_scan(int *out, const int *in, volatile int *sums, volatile int *flags, int *ticket) {  // blocks of 128: each waits for the one before
  __shared__ int s[128], before, mine; int t = threadIdx.x; if (t == 0) mine = atomicAdd(ticket, 1); __syncthreads(); int b = mine, v = in[b * 128 + t]; s[t] = v; __syncthreads();
  for (int d = 1; d < 128; d <<= 1) { int w = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += w; __syncthreads(); }
  if (t == 0) { int p = 0; if (b) { while (flags[b - 1] == 0) {} __threadfence(); p = sums[b - 1]; } sums[b] = p + s[127]; __threadfence(); flags[b] = 1; before = p; }
  __syncthreads(); out[b * 128 + t] = before + s[t];
}

extern "C" __global__ void lock_each(int *lock, int *value, int times) {  // lanes of one warp compete for one lock
  for (int i = 0; i < times; i++) { bool done = false;
    while (!done) if (atomicCAS(lock, 0, 1) == 0) { __threadfence(); *(volatile int *)value = *(volatile int *)value + 1; __threadfence(); atomicExch(lock, 0); done = true; } }
}

extern "C" __global__ void spmv(float *y, const int *start, const int *column, const float *value, const float *x, int rows) {  // a warp for each row
  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31; if (row >= rows) return; float sum = 0;
  for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum = __fmaf_rn(value[i], x[column[i]], sum);
  for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
  if (lane == 0) y[row] = sum;
}

extern "C" __global__ void partition(int *out, const int *in, int *count, int n, int pivot) {  // ballots place what is below the pivot
  int i = blockIdx.x * blockDim.x + threadIdx.x; bool take = i < n && in[i] < pivot; unsigned mask = __ballot_sync(~0u, take); int lane = threadIdx.x & 31, base = 0;
  if (lane == 0 && mask) base = atomicAdd(count, __popc(mask)); base = __shfl_sync(~0u, base, 0);
  if (take) out[base + __popc(mask & ((1u << lane) - 1))] = in[i];
}

extern "C" __global__ void last_block(float *out, const float *in, float *partial, unsigned *done, int n) {  // the block that ends last sums up
  __shared__ float s[128]; __shared__ bool last; int t = threadIdx.x; float v = 0; for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) v += in[i]; s[t] = v; __syncthreads();
  for (int d = 64; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t == 0) { partial[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1; } __syncthreads();
  if (last && t == 0) { float sum = 0; for (int i = 0; i < gridDim.x; i++) sum += ((volatile float *)partial)[i]; *out = sum; }
}
