// Types of CUDA's runtime. The builder includes this header if the source names one: structs that kernels take keep
// handles and error codes, and headers for both sides declare functions and variables of the host with them.
#pragma once

#include "launch_abi.h"

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = mr_invalid_value,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = mr_invalid_configuration,
  cudaErrorLaunchPendingCountExceeded = mr_pending_count_exceeded,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999,
};
typedef enum cudaError cudaError_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
/// Kernels do not use it. The fields that most programs print.
struct cudaDeviceProp {
  char name[256];
  unsigned long totalGlobalMem;
  unsigned long sharedMemPerBlock;
  unsigned long sharedMemPerMultiprocessor;
  unsigned long totalConstMem;
  int regsPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int maxThreadsPerMultiProcessor;
  int multiProcessorCount;
  int major;
  int minor;
  int l2CacheSize;
};

/// Memory with rows of `pitch` bytes, as the host's cudaMalloc3D gives it.
struct cudaPitchedPtr {
  void* ptr;
  unsigned long pitch;
  unsigned long xsize;
  unsigned long ysize;
};
struct cudaExtent {
  unsigned long width;
  unsigned long height;
  unsigned long depth;
};
struct cudaPos {
  unsigned long x;
  unsigned long y;
  unsigned long z;
};
