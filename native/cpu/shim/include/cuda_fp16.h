// CUDA's half and half2, for the CPU device. On CUDA devices, the toolkit's header of this name is included.
//
// The builder preprocesses sources without the shim. It then finds these pragmas and puts directives in their place
// (src/toolchain/compilers/cpu-compiler.ts).
#ifndef __CUDA_FP16_H__
#define __CUDA_FP16_H__
#define __CUDA_FP16_TYPES_EXIST__

#if !defined(MR_INLINE)
#if defined(__CUDA_NO_HALF_CONVERSIONS__)
#pragma mr_directive define __CUDA_NO_HALF_CONVERSIONS__
#endif
#if defined(__CUDA_NO_HALF_OPERATORS__)
#pragma mr_directive define __CUDA_NO_HALF_OPERATORS__
#endif
#if defined(__CUDA_NO_HALF2_OPERATORS__)
#pragma mr_directive define __CUDA_NO_HALF2_OPERATORS__
#endif
#if defined(CUDA_NO_HALF)
#pragma mr_directive define CUDA_NO_HALF
#endif
#pragma mr_directive include "include/cuda_fp16.h"
#else

#include "half_products.h"

#define MR_HALF __half
#define MR_PAIR __half2
#define MR_HALF_RAW __half_raw
#define MR_PAIR_RAW __half2_raw
#define MR_OTHER_HALF __nv_bfloat16
#define MR_FORMAT mr_half_format
#define MR_WORD half
#if defined(__CUDA_NO_HALF_CONVERSIONS__)
#define MR_NO_CONVERSIONS
#endif
#if defined(__CUDA_NO_HALF_OPERATORS__)
#define MR_NO_HALF_OPERATORS
#endif
#if defined(__CUDA_NO_HALF2_OPERATORS__)
#define MR_NO_PAIR_OPERATORS
#endif
#include "half_functions.h"

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bff)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00)

#if !defined(CUDA_NO_HALF)
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
#endif

#endif
#endif
