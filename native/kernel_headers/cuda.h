// NVRTC, nvcc and the CPU device's shim declare the other names of this header without an include.
#pragma once

#if !defined(CUDA_VERSION)
#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif

/// How the driver API names the handles of textures and surfaces, and addresses of device memory.
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef unsigned long long CUdeviceptr;
