#include "cuda/driver_errors.h"

#include "cuda/driver_log.h"

namespace millrace::cuda {

Status FromDriver(CUresult code, const char* note) {
  if (code == CUDA_SUCCESS) return {};
  const auto driver_code = static_cast<int32_t>(code);
  if (IsSticky(code)) return {StatusCode::kDeviceLost, note, driver_code};
  note = Explained(code, note);
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
