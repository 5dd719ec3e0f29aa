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

/// Begins an entry point: logs the call, and fails if a failure was requested.
#define MR_ENTER(...)                                                                         \
  do {                                                                                        \
    const ::millrace::cuda::CUresult mr_injected = ::millrace::fake_cuda::Enter(__VA_ARGS__); \
    if (mr_injected != ::millrace::cuda::CUDA_SUCCESS) return mr_injected;                    \
  } while (false)

/// Declares `device`, the thread's current device; returns if there is none or it is lost.
#define MR_CURRENT(device)                                                                 \
  ::millrace::fake_cuda::Device* device = nullptr;                                         \
  do {                                                                                     \
    const ::millrace::cuda::CUresult mr_current = ::millrace::fake_cuda::Current(&device); \
    if (mr_current != ::millrace::cuda::CUDA_SUCCESS) return mr_current;                   \
  } while (false)

/// Declares `queue`, the stream of a handle; returns if there is none, or if it is not on `device`.
#define MR_STREAM(queue, handle, device)                                                                  \
  ::millrace::fake_cuda::Stream* queue = ::millrace::fake_cuda::FindStream(handle, *device);              \
  do {                                                                                                    \
    if (queue == nullptr || &queue->device != device) return ::millrace::cuda::CUDA_ERROR_INVALID_HANDLE; \
  } while (false)

namespace millrace::fake_cuda {

inline Event* FromHandle(cuda::CUevent event) {
  return reinterpret_cast<Event*>(event);
}

/// The name of a stream or event in the log.
inline std::string Name(cuda::CUstream stream) {
  const bool is_default = reinterpret_cast<uintptr_t>(stream) <= 1;
  return "stream=" + std::to_string(is_default ? 0 : reinterpret_cast<Stream*>(stream)->number);
}
inline std::string Name(cuda::CUevent event) {
  return "event=" + std::to_string(event == nullptr ? 0 : FromHandle(event)->number);
}

/// After a wait of the host, the device's pool releases memory above its threshold.
void ShrinkPool(Device& device);

/// Waits for all of the device's work, as a real driver does before it unmaps its own or another process's memory.
/// Counts the call, and whether it had to wait.
void AwaitWork(Device& device);

/// Whether a device can copy or fill these bytes: host memory, its own memory, or that of a peer with access.
bool Reaches(Device& device, cuda::CUdeviceptr address, uint64_t bytes);
/// Whether the driver knows these bytes.
bool IsKnown(cuda::CUdeviceptr address, uint64_t bytes);

/// Accepts the launch of a graph's kernel node, with copies of its parameters. Empty if the device cannot run it.
std::function<void(bool is_cooperative)> AcceptNode(const cuda::CUDA_KERNEL_NODE_PARAMS& params);

/// Of cuDeviceGetAttribute.
cuda::CUresult TextureLimit(cuda::CUdevice_attribute attribute, int* value);

/// Queues work that takes at least the time of MILLRACE_FAKE_CUDA_DELAY_US.
void PushWork(Stream& stream, std::function<void()> work);
/// Work that uses memory and no kernel: it does not run while the device is lost.
void PushCopy(Stream& stream, std::function<void()> copy);

}  // namespace millrace::fake_cuda
