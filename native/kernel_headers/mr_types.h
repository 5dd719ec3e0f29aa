// The types and macros that nvcc has without an include: the head of every kernel source. The builder defines
// MR_OWN_name if the source declares the name itself, MR_WITH_name if it uses one of the last six names and does not
// declare it, and MR_WITH_LIBRARIES if it includes headers that are not in this folder, such as CUDA's C++ libraries.
//
// The files of this folder whose names begin with mr_ are written for NVRTC, g++ and clang; the others have the names
// of the headers that sources include, and consist of macros, because the CPU device may preprocess a source before it
// puts this head in front.
#pragma once

#include <limits.h>
#include <math.h>
#include <stdint.h>

#define MR_BOTH __host__ __device__

#if defined(__CUDACC_RTC__) && !defined(MILLRACE_CPU_DEVICE)
// A word of nvcc's host compilers, which only silences warnings.
#define __extension__
#endif

#if !defined(CUDART_VERSION)
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif

#if !defined(MR_OWN_int8_t)
typedef signed char int8_t;
#endif
#if !defined(MR_OWN_uint8_t)
typedef unsigned char uint8_t;
#endif
#if !defined(MR_OWN_int16_t)
typedef short int16_t;
#endif
#if !defined(MR_OWN_uint16_t)
typedef unsigned short uint16_t;
#endif
#if !defined(MR_OWN_int32_t)
typedef int int32_t;
#endif
#if !defined(MR_OWN_uint32_t)
typedef unsigned uint32_t;
#endif

#if defined(MR_WITH_LIBRARIES)
// As CUDA's libraries declare them for NVRTC.
typedef long long mr_int64;
typedef unsigned long long mr_uint64;
#else
typedef long mr_int64;
typedef unsigned long mr_uint64;
#endif
#if !defined(MR_OWN_int64_t)
typedef mr_int64 int64_t;
#endif
#if !defined(MR_OWN_uint64_t)
typedef mr_uint64 uint64_t;
#endif
#if !defined(MR_OWN_intptr_t)
typedef mr_int64 intptr_t;
#endif
#if !defined(MR_OWN_uintptr_t)
typedef mr_uint64 uintptr_t;
#endif
#if !defined(MR_OWN_intmax_t)
typedef mr_int64 intmax_t;
#endif
#if !defined(MR_OWN_uintmax_t)
typedef mr_uint64 uintmax_t;
#endif

// The first three are glibc's older names, which nvcc has through <sys/types.h>; sources use uchar beside them.
#if defined(MR_WITH_ushort)
typedef unsigned short ushort;
#endif
#if defined(MR_WITH_uint)
typedef unsigned uint;
#endif
#if defined(MR_WITH_ulong)
typedef unsigned long ulong;
#endif
#if defined(MR_WITH_ssize_t)
typedef long ssize_t;
#endif
#if defined(MR_WITH_uchar)
typedef unsigned char uchar;
#endif
// Of the host: classes of which kernels use other members declare functions with such parameters.
#if defined(MR_WITH_FILE)
struct mr_host_file;
typedef struct mr_host_file FILE;
#endif

// NVRTC has them for code that launches kernels. No launch of this library begins before those ahead of it in its
// stream have ended, so they have nothing to do.
#if defined(MR_WITH_DEPENDENT_LAUNCHES) && !defined(__CUDACC_RDC__)
static __device__ inline void cudaGridDependencySynchronize() {}
static __device__ inline void cudaTriggerProgrammaticLaunchCompletion() {}
#endif
