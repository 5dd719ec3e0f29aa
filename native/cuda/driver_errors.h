// Translates driver error codes to Status codes.
#pragma once

#include "cuda/driver_types.h"
#include "hal/status.h"

namespace millrace::cuda {

/// Whether the code means that the context is corrupted, which loses the device for the rest of the process.
[[nodiscard]] bool IsSticky(CUresult code);

/// The driver's answer to a call on which queued work relies already: asked once more after a refusal that may pass.
template <typename Call>
CUresult Insist(Call&& call) {
  const CUresult code = call();
  return code == CUDA_SUCCESS || IsSticky(code) ? code : call();
}

/// `note` describes the failed operation. CUDA_SUCCESS gives an ok Status.
Status FromDriver(CUresult code, const char* note);

}  // namespace millrace::cuda
