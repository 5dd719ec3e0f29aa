// Only host code uses the other names of this header, and the library removes host code from kernel sources.
#pragma once

// The header of the toolkit includes these.
#if defined(__has_include)
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#endif
