// What other fake libraries need of the fake driver.
#pragma once

#include "cuda/driver_types.h"

extern "C" {

/// Queues `run(data)` on a stream of the current device, or adds it to the stream's capture, and logs `call`. `drop`
/// destroys the data when nothing will run it any more.
__attribute__((visibility("default"))) millrace::cuda::CUresult fakeCudaPush(millrace::cuda::CUstream stream,
                                                                             const char* call, void (*run)(void*),
                                                                             void (*drop)(void*), void* data);
/// Whether the stream is in a capture.
__attribute__((visibility("default"))) bool fakeCudaCaptures(millrace::cuda::CUstream stream);
}
