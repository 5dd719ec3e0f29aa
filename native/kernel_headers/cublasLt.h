// What this header declares is for the host, whose code is removed from kernel sources.
#pragma once

// The header of the toolkit includes these.
#if defined(__has_include)
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#endif
