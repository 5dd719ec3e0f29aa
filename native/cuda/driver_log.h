// What the driver says itself of calls that failed (12.9 and newer), read only after a failure.
#pragma once

#include "cuda/driver_types.h"

namespace millrace::cuda {

/// For the last call of this thread, which failed with `code`: `note` with the driver's explanation behind it, kept for
/// ever. `note` itself if the driver has none. Thread: any.
const char* Explained(CUresult code, const char* note);

}  // namespace millrace::cuda
