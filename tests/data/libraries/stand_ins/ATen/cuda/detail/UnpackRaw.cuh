#include <ATen/cuda/CUDAGeneratorImpl.h>
