// What the simulator refuses by name: kernels that launch kernels, functions of other modules, textures, surfaces.
#include <cuda_runtime.h>

extern "C" __global__ void child(int *out) { out[threadIdx.x] += 1; }
extern "C" __global__ void parent(int *out, int depth) {
  if (depth > 0 && threadIdx.x == 0) child<<<1, 32>>>(out);
}

extern __device__ int elsewhere(int);
extern "C" __global__ void linked(int *out) { out[threadIdx.x] = elsewhere(threadIdx.x); }

extern "C" __global__ void texture(float *out, cudaTextureObject_t t) { out[threadIdx.x] = tex2D<float>(t, threadIdx.x * .5f, .25f); }
extern "C" __global__ void surface(float *out, cudaSurfaceObject_t s) { out[threadIdx.x] = surf2Dread<float>(s, threadIdx.x * 4, 0); }
