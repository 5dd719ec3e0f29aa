// What a driver code means for us: unforeseen by the caller, out of memory, or the end of the device.
#pragma once

#include "cuda/driver_types.h"
#include "hal/status.h"

namespace millrace::cuda {

/// The context is gone with this code, and with it the device for the rest of the process.
[[nodiscard]] bool IsSticky(CUresult code);

/// `note` says what was tried. Success is an ok Status.
Status FromDriver(CUresult code, const char* note);

}  // namespace millrace::cuda
