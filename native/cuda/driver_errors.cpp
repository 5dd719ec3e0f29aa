#include "cuda/driver_errors.h"

namespace millrace::cuda {

bool IsSticky(CUresult code) {
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

Status FromDriver(CUresult code, const char* note) {
  if (code == CUDA_SUCCESS) return {};
  const auto driver_code = static_cast<int32_t>(code);
  if (IsSticky(code)) return {StatusCode::kDeviceLost, note, driver_code};
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {StatusCode::kOutOfMemory, note, driver_code};
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return {StatusCode::kUnavailable, note, driver_code};
    case CUDA_ERROR_NOT_SUPPORTED:
      return {StatusCode::kUnsupported, note, driver_code};
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
      return {StatusCode::kCompile, note, driver_code};
    default:
      return {StatusCode::kLaunchFailed, note, driver_code};
  }
}

}  // namespace millrace::cuda
