// Declares every driver function of native/cuda/driver_functions.def as an export of this library. A row without a
// definition does not link, and a definition that differs from its row does not compile.
#pragma once

#include "cuda/driver_types.h"
#include "engine.h"

namespace millrace::cuda {

extern "C" {
#define MR_DRIVER(name, version, presence, params) __attribute__((visibility("default"))) CUresult name params;
#include "cuda/driver_functions.def"
#undef MR_DRIVER
}

}  // namespace millrace::cuda

/// Begins an entry point: the call is logged, and fails here when it was told to.
#define MR_ENTER(...)                                                                         \
  do {                                                                                        \
    const ::millrace::cuda::CUresult mr_injected = ::millrace::fake_cuda::Enter(__VA_ARGS__); \
    if (mr_injected != ::millrace::cuda::CUDA_SUCCESS) return mr_injected;                    \
  } while (false)

/// Declares `device`, the thread's current one; returns when there is none or it is lost.
#define MR_CURRENT(device)                                                                 \
  ::millrace::fake_cuda::Device* device = nullptr;                                         \
  do {                                                                                     \
    const ::millrace::cuda::CUresult mr_current = ::millrace::fake_cuda::Current(&device); \
    if (mr_current != ::millrace::cuda::CUDA_SUCCESS) return mr_current;                   \
  } while (false)

namespace millrace::fake_cuda {

inline Stream* FromHandle(cuda::CUstream stream) {
  return reinterpret_cast<Stream*>(stream);
}
inline Event* FromHandle(cuda::CUevent event) {
  return reinterpret_cast<Event*>(event);
}
inline Device* FromHandle(cuda::CUcontext context) {
  return reinterpret_cast<Device*>(context);
}

/// How the log names a stream or an event.
inline std::string Name(cuda::CUstream stream) {
  return "stream=" + std::to_string(stream == nullptr ? 0 : FromHandle(stream)->number);
}
inline std::string Name(cuda::CUevent event) {
  return "event=" + std::to_string(event == nullptr ? 0 : FromHandle(event)->number);
}

/// Queues work that takes as long as MILLRACE_FAKE_CUDA_DELAY_US says, at least.
void PushWork(Stream& stream, std::function<void()> work);

}  // namespace millrace::fake_cuda
