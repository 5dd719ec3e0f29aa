// Loads cuBLASLt, NVIDIA's library of matrix products, if it is installed. Thread: any; searched for once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/driver_types.h"
#include "hal/library_plan.h"
#include "hal/status.h"

namespace millrace::cuda {

using CublasLtHandle = struct cublasLtContext*;
/// A description of an operation, of a matrix, or of what is preferred.
using CublasLtObject = struct cublasLtObject*;

enum CublasCode : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

struct CublasLtAlgorithm {
  uint64_t data[8] = {};
};

struct CublasLtHeuristic {
  CublasLtAlgorithm algorithm;
  size_t workspace_bytes = 0;
  CublasCode state = CUBLAS_STATUS_SUCCESS;
  float waves = 0;
  int reserved[4] = {};
};

inline constexpr int kCudaR32F = 0;
inline constexpr int kCudaR64F = 1;
inline constexpr int kCudaR16F = 2;
inline constexpr int kCudaR16BF = 14;
inline constexpr int kCompute32F = 68;
inline constexpr int kCompute64F = 70;
inline constexpr int kComputeTf32 = 77;
inline constexpr int kDescTransposesA = 3;
inline constexpr int kDescTransposesB = 4;
inline constexpr int32_t kTransposed = 1;
inline constexpr int kLayoutBatchCount = 5;
inline constexpr int kLayoutBatchStride = 6;
inline constexpr int kPreferWorkspaceBytes = 1;
inline constexpr int kPreferReductions = 3;
/// Of A; B, C and D follow.
inline constexpr int kPreferAlignment = 5;
/// Parts of a sum are added in the type in which it is computed, never in a narrower result.
inline constexpr uint32_t kReduceInComputeType = 2;

struct CublasLtTable {
#define MR_CUBLASLT(name, params) CublasCode(*name) params = nullptr;
#include "cuda/cublaslt_functions.def"
#undef MR_CUBLASLT
};

struct CublasLtLibrary {
  CublasLtTable functions;
  hal::LibraryInfo info;
};

/// Null when there is none. If MILLRACE_CUBLASLT names one, no other is searched for.
const CublasLtLibrary* OpenCublasLt();

/// The failure of one of its calls, by the name of its status.
Status CublasLtFailure(CublasCode code);

}  // namespace millrace::cuda
