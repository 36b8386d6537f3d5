// What flash-attn's kernels take from PyTorch: the state of a Philox generator.
#pragma once
#include <cstdint>
#include <tuple>
namespace at {
struct PhiloxCudaState { uint64_t seed, offset; };
namespace cuda { namespace philox {
inline __host__ __device__ std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState s) { return {s.seed, s.offset}; }
} }
}
