// A stand-in of the CUDA runtime and driver: launches, fills, copies and tensor maps go to hooks, nothing runs.
// The device is of the architecture `capability` (e.g. 90), with `multiprocessors` multiprocessors, each with room for two CTAs
// of any kernel.
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
static struct { const void* host; const char* name; } functions[1024];
static int known;

int capability = 90, multiprocessors = 4;
u64 memory;  // where cudaMalloc goes on
void (*on_launch)(const char* name, const unsigned* shape, unsigned shared, void** arguments);
void (*on_fill)(u64 at, int value, u64 size);
void (*on_copy)(u64 to, u64 from, u64 size);
int (*on_map)(void* map, int type, int rank, u64 at, const u64* dims, const u64* strides, const unsigned* box,
              const unsigned* steps, int interleave, int swizzle, int l2, int fill);

int cuTensorMapEncodeTiled(void* m, int t, int r, u64 a, const u64* d, const u64* s, const unsigned* b, const unsigned* e,
                           int i, int w, int l, int o) {
  return on_map(m, t, r, a, d, s, b, e, i, w, l, o);
}
#define MISSING(name) int name(void) { return 999; }
MISSING(cuTensorMapEncodeIm2col) MISSING(cuGetErrorString) MISSING(cuGetErrorName) MISSING(cuLaunchKernelEx)
MISSING(cuOccupancyMaxActiveClusters)
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** at, unsigned v, unsigned long long f,
                                             enum cudaDriverEntryPointQueryResult* how) {
  if (how) *how = cudaDriverEntryPointSuccess;
  *at = strcmp(name, "cuTensorMapEncodeTiled") ? NULL : (void*)cuTensorMapEncodeTiled;
  return *at ? 0 : cudaErrorUnknown;
}
cudaError_t cudaGetDriverEntryPoint(const char* name, void** at, unsigned long long f,
                                    enum cudaDriverEntryPointQueryResult* how) {
  return cudaGetDriverEntryPointByVersion(name, at, 0, f, how);
}

void** __cudaRegisterFatBinary(void* f) { static void* handle; return &handle; }
void __cudaRegisterFatBinaryEnd(void** f) {}
void __cudaUnregisterFatBinary(void** f) {}
void __cudaRegisterVar(void** f, char* a, char* b, const char* c, int d, size_t e, int g, int h) {}
void __cudaRegisterFunction(void** f, const char* host, char* device, const char* name, int limit, void* a, void* b, void* c,
                            void* d, int* e) {
  if (known == sizeof functions / sizeof *functions) abort();
  functions[known].host = host;
  functions[known++].name = name;
}

static cudaError_t launched(const void* f, dim3 g, dim3 b, dim3 c, size_t shared, void** arguments) {
  unsigned shape[9] = {g.x, g.y, g.z, b.x, b.y, b.z, c.x, c.y, c.z};
  for (int i = 0; i < known; i++)
    if (functions[i].host == f) return on_launch(functions[i].name, shape, shared, arguments), 0;
  return cudaErrorInvalidDeviceFunction;
}

static dim3 grid_, block_;
static size_t shared_;
unsigned __cudaPushCallConfiguration(dim3 g, dim3 b, size_t s, struct CUstream_st* t) {
  grid_ = g, block_ = b, shared_ = s;
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* g, dim3* b, size_t* s, void* t) {
  *g = grid_, *b = block_, *s = shared_;
  return 0;
}
cudaError_t __cudaGetKernel(cudaKernel_t* k, const void* f) { return *k = (cudaKernel_t)f, 0; }
cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 g, dim3 b, void** a, size_t s, cudaStream_t t) {
  dim3 one = {1, 1, 1};
  return launched(k, g, b, one, s, a);
}
cudaError_t cudaLaunchKernel(const void* f, dim3 g, dim3 b, void** a, size_t s, cudaStream_t t) {
  return __cudaLaunchKernel((cudaKernel_t)f, g, b, a, s, t);
}
cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 g, dim3 b, void** a, size_t s, cudaStream_t t) {
  return __cudaLaunchKernel((cudaKernel_t)f, g, b, a, s, t);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* l, const void* f, void** a) {
  dim3 cluster = {1, 1, 1};
  for (unsigned i = 0; i < l->numAttrs; i++)
    if (l->attrs[i].id == cudaLaunchAttributeClusterDimension) memcpy(&cluster, &l->attrs[i].val.clusterDim, 12);
  return launched(f, l->gridDim, l->blockDim, cluster, l->dynamicSmemBytes, a);
}

cudaError_t cudaMemset(void* p, int v, size_t n) { return on_fill((u64)p, v, n), 0; }
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t t) { return on_fill((u64)p, v, n), 0; }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, enum cudaMemcpyKind k, cudaStream_t t) {
  return on_copy((u64)to, (u64)from, n), 0;
}
cudaError_t cudaMalloc(void** p, size_t n) {
  *p = (void*)memory;
  return memory += (n + 255) / 256 * 256, 0;
}
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t t) { return cudaMalloc(p, n); }
cudaError_t cudaFree(void* p) { return 0; }
cudaError_t cudaFreeAsync(void* p, cudaStream_t t) { return 0; }
cudaError_t cudaFuncSetAttribute(const void* f, enum cudaFuncAttribute a, int v) { return 0; }
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* a, const void* f) {
  memset(a, 0, sizeof *a);
  a->maxThreadsPerBlock = 1024, a->numRegs = 64, a->ptxVersion = a->binaryVersion = capability;
  return 0;
}
cudaError_t cudaGetLastError(void) { return 0; }
cudaError_t cudaPeekAtLastError(void) { return 0; }
const char* cudaGetErrorString(cudaError_t e) { return "an error"; }
const char* cudaGetErrorName(cudaError_t e) { return "an error"; }
cudaError_t cudaDeviceSynchronize(void) { return 0; }
cudaError_t cudaStreamSynchronize(cudaStream_t t) { return 0; }
cudaError_t cudaGetDevice(int* d) { return *d = 0; }
cudaError_t cudaSetDevice(int d) { return 0; }
cudaError_t cudaGetDeviceCount(int* n) { return *n = 1, 0; }
cudaError_t cudaDeviceGetAttribute(int* v, enum cudaDeviceAttr a, int d) {
  switch (a) {
    case cudaDevAttrComputeCapabilityMajor: *v = capability / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *v = capability % 10; break;
    case cudaDevAttrMultiProcessorCount: *v = multiprocessors; break;
    case cudaDevAttrWarpSize: *v = 32; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *v = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = (capability == 120 ? 99 : capability == 80 ? 163 : 227) << 10; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *v = (capability == 120 ? 100 : capability == 80 ? 164 : 228) << 10; break;
    case cudaDevAttrMaxThreadsPerBlock: *v = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *v = capability == 120 ? 1536 : 2048; break;
    case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: *v = 1 << 16; break;
    case cudaDevAttrMaxGridDimX: *v = 0x7fffffff; break;
    default: *v = 0;
  }
  return 0;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void* f, int b, size_t s) { return *n = 2, 0; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void* f, int b, size_t s, unsigned g) {
  return *n = 2, 0;
}
