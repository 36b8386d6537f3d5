#pragma once
#include <cuda_fp16.h>
namespace at { using Half = __half; }
