// Translates driver error codes to Status codes.
#pragma once

#include "cuda/driver_types.h"
#include "hal/status.h"

namespace millrace::cuda {

/// Whether the code means that the context is corrupted, which loses the device for the rest of the process.
[[nodiscard]] inline bool IsSticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_DEINITIALIZED:  // The process is exiting: no call succeeds any more.
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

/// The driver's answer to a call on which queued work relies already: asked once more after a refusal that may pass.
template <typename Call>
CUresult Insist(Call&& call) {
  const CUresult code = call();
  return code == CUDA_SUCCESS || IsSticky(code) ? code : call();
}

/// `note` describes the failed operation. CUDA_SUCCESS gives an ok Status.
Status FromDriver(CUresult code, const char* note);

}  // namespace millrace::cuda
