// Device-wide algorithms of CUB through their host functions; PART chooses some.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cub/device/device_select.cuh>

struct Odd { __host__ __device__ bool operator()(int x) const { return x & 1; } };
struct Less { __host__ __device__ bool operator()(float2 a, float2 b) const { return a.x < b.x; } };

template <class T> using Three = cuda::std::array<T, 3>;

template <class Call> int twice(void* work, Call call) {
  size_t bytes = 0;
  call((void*)nullptr, bytes);
  return call(work, bytes);
}

// Arrays: x, y, counts, work, more, values.
extern "C" int build(void** at, int which, int n, int segments) {
  auto x = (int*)at[0]; auto y = (int*)at[1]; auto c = (int*)at[2]; auto more = (int*)at[4];
  return twice(at[3], [=](void* w, size_t& b) -> int {
    switch (which) {
#if PART == 0
      case 0: return cub::DeviceSelect::If(w, b, (const int*)x, y, c, n, Odd{});
      case 1: return cub::DevicePartition::If(w, b, (const int*)x, y, c, n, Odd{});
      case 2: return cub::DeviceHistogram::MultiHistogramEven<4, 3>(
          w, b, (const unsigned char*)x, Three<int*>{y, y + 32, y + 64}, Three<int>{33, 17, 9}, Three<int>{0, 0, 16},
          Three<int>{256, 128, 200}, n);
      case 3: return cub::DeviceRunLengthEncode::Encode(w, b, (const int*)x, y, more, c, n);
#elif PART == 1
      case 4: return cub::DeviceSegmentedReduce::Max(w, b, (const int*)x, y, segments, (const int*)c, (const int*)c + 1);
      case 5: return cub::DeviceMergeSort::StableSortKeys(w, b, (float2*)x, n, Less{});
      case 6: return cub::DeviceReduce::ReduceByKey(w, b, (const int*)x, y, (const float*)at[5], (float*)more, c, cuda::maximum<>{}, n);
      case 7: return cub::DeviceScan::InclusiveSumByKey(w, b, (const int*)x, (const double*)more, (double*)y, n);
#else
      case 8: return cub::DeviceRadixSort::SortKeysDescending(w, b, (const double*)x, (double*)y, n, 40, 64);
      case 9: return cub::DeviceSegmentedSort::SortPairs(w, b, (const int*)x, y, (const int*)more, (int*)at[5], n, segments, (const int*)c, (const int*)c + 1);
#endif
      default: return 1;
    }
  });
}
