// CUDA's bfloat16 types, for the CPU device. On CUDA devices, the toolkit's header of this name is included.
// cuda_fp16.h, which this header includes like CUDA's, explains the pragmas.
#ifndef __CUDA_BF16_H__
#define __CUDA_BF16_H__
#define __CUDA_BF16_TYPES_EXIST__

#include <cuda_fp16.h>

#if !defined(MR_INLINE)
#if defined(__CUDA_NO_BFLOAT16_CONVERSIONS__)
#pragma mr_directive define __CUDA_NO_BFLOAT16_CONVERSIONS__
#endif
#if defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#pragma mr_directive define __CUDA_NO_BFLOAT16_OPERATORS__
#endif
#if defined(__CUDA_NO_BFLOAT162_OPERATORS__)
#pragma mr_directive define __CUDA_NO_BFLOAT162_OPERATORS__
#endif
#if defined(CUDA_NO_BFLOAT16)
#pragma mr_directive define CUDA_NO_BFLOAT16
#endif
#pragma mr_directive include "include/cuda_bf16.h"
#else

#define MR_HALF __nv_bfloat16
#define MR_PAIR __nv_bfloat162
#define MR_HALF_RAW __nv_bfloat16_raw
#define MR_PAIR_RAW __nv_bfloat162_raw
#define MR_OTHER_HALF __half
#define MR_FORMAT mr_bfloat16_format
#define MR_WORD bfloat16
#if defined(__CUDA_NO_BFLOAT16_CONVERSIONS__)
#define MR_NO_CONVERSIONS
#endif
#if defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#define MR_NO_HALF_OPERATORS
#endif
#if defined(__CUDA_NO_BFLOAT162_OPERATORS__)
#define MR_NO_PAIR_OPERATORS
#endif
#include "half_functions.h"

MR_INLINE __half::__half(const __nv_bfloat16 other) : __x(mr_half_format::nearest(other.mr_wide())) {}
MR_INLINE __nv_bfloat16::__nv_bfloat16(const __half other) : __x(mr_bfloat16_format::nearest(other.mr_wide())) {}

#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7f)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x8000)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80)

#if !defined(CUDA_NO_BFLOAT16)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#endif

#endif
#endif
