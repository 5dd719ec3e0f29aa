// A CUDA driver for machines without a GPU: native/cuda runs on it unchanged, through the same dlopen and functions.
// Host threads do the work: fills and copies move bytes, and a module is a shared object in the CPU device's image
// format (mr_entry_<name>, mr_params_<name>) whose functions run as kernels. options.h lists the environment variables;
// engine.h describes streams and events.
//
//   g++ -std=c++20 -shared -fPIC -fno-exceptions -I native -o libfake_cuda.so
//     test/native/fake_cuda/*.cpp (without fake_nvrtc.cpp) native/cuda/driver_errors.cpp
//   MILLRACE_CUDA_DRIVER=$PWD/libfake_cuda.so node ...
//
// It is stricter than a GPU where that finds mistakes: a call without a current context fails, a stream or event of
// another context is rejected, and unregistered host memory cannot be copied (a real driver would stage it and block
// the caller). As on a GPU, a fill of host memory blocks the caller, and so does freeing the device's own memory or
// closing another process's while the device has work. A pool short of memory makes a stream wait for another's frees,
// unless that is disabled.
//
// This file: process, devices, contexts and streams.
#include <algorithm>
#include <cstring>
#include <string>

#include "entry.h"
#include "options.h"

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                                    uint64_t, CUdriverProcAddressQueryResult* found) {
  const struct {
    const char* name;
    int version;
    void* function;
  } rows[] = {
#define MR_DRIVER(name, version, presence, params) {#name, version, reinterpret_cast<void*>(&name)},
#include "cuda/driver_functions.def"
#undef MR_DRIVER
  };
  *function = nullptr;
  *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  for (const auto& row : rows) {
    if (std::strcmp(row.name, symbol) != 0 || IsMissing(symbol)) continue;
    *found = version < row.version ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SUCCESS;
    if (*found == CU_GET_PROC_ADDRESS_SUCCESS) *function = row.function;
  }
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

/// For tests: replaces MILLRACE_FAKE_CUDA_FAIL and MILLRACE_FAKE_CUDA_BROKEN_PEERS.
__attribute__((visibility("default"))) void fake_cuda_break_peers(const char* which) {
  SetBrokenPeers(which);
}

__attribute__((visibility("default"))) void fake_cuda_fail(const char* specification) {
  SetFailures(specification);
}

/// For tests: the counters of a device in engine.h.
__attribute__((visibility("default"))) int fake_cuda_frees(int ordinal) {
  return GetWorld().devices[static_cast<size_t>(ordinal)]->frees.load();
}

__attribute__((visibility("default"))) int fake_cuda_waiting_frees(int ordinal) {
  return GetWorld().devices[static_cast<size_t>(ordinal)]->waiting_frees.load();
}

__attribute__((visibility("default"))) int fake_cuda_questions(int ordinal) {
  return GetWorld().devices[static_cast<size_t>(ordinal)]->questions.load();
}

CUresult cuInit(unsigned int) {
  MR_ENTER("cuInit");
  GetWorld().is_started = true;
  return GetWorld().devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuLogsDumpToMemory(unsigned int*, char* buffer, size_t* size, unsigned int) {
  MR_ENTER("cuLogsDumpToMemory");
  *size = Said().copy(buffer, *size);
  buffer[*size] = '\0';
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  MR_ENTER("cuDriverGetVersion");
  *version = GetOptions().version;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  MR_ENTER("cuDeviceGetCount");
  if (!GetWorld().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(GetWorld().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  MR_ENTER("cuDeviceGet");
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= GetWorld().devices.size()) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  MR_ENTER("cuDeviceGetName");
  const std::string text = "Fake device " + std::to_string(device);
  std::strncpy(name, text.c_str(), static_cast<size_t>(length));
  return CUDA_SUCCESS;
}

/// The fake NVML makes the same.
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  MR_ENTER("cuDeviceGetUuid");
  std::memset(uuid->bytes, 0, sizeof(uuid->bytes));
  uuid->bytes[sizeof(uuid->bytes) - 1] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  MR_ENTER("cuDeviceTotalMem");
  *bytes = GetOptions().memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  MR_ENTER("cuDeviceGetAttribute", std::to_string(attribute));
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 0x7fffffff;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = kMultiprocessors;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      *value = GetOptions().can_cooperate;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      *value = !IsMissing("cuMemAllocAsync");
      break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      *value = !IsMissing("cuStreamWriteValue64");
      break;
    default:
      return TextureLimit(attribute, value);
  }
  return CUDA_SUCCESS;
}

// ── Contexts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  MR_ENTER("cuDevicePrimaryCtxRetain", "device=" + std::to_string(ordinal));
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  Device* device = world.devices[static_cast<size_t>(ordinal)].get();
  if (const int lost = device->lost.load(); lost != 0) return static_cast<CUresult>(lost);
  device->is_retained = true;
  *context = reinterpret_cast<CUcontext>(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* is_active) {
  MR_ENTER("cuDevicePrimaryCtxGetState");
  *flags = 0;
  *is_active = GetWorld().devices[static_cast<size_t>(ordinal)]->is_retained;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  MR_ENTER("cuCtxGetCurrent");
  *context = CurrentContexts().empty() ? nullptr : CurrentContexts().back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  MR_ENTER("cuCtxSetCurrent");
  if (!CurrentContexts().empty()) CurrentContexts().pop_back();
  if (context != nullptr) CurrentContexts().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  MR_ENTER("cuCtxPushCurrent");
  CurrentContexts().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  MR_ENTER("cuCtxPopCurrent");
  if (CurrentContexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = CurrentContexts().back();
  CurrentContexts().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  MR_ENTER("cuCtxSynchronize");
  MR_CURRENT(device);
  std::set<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(GetWorld().mutex);
    streams = device->streams;
    if (device->legacy != nullptr) streams.insert(device->legacy);
  }
  for (const std::shared_ptr<Stream>& stream : streams) stream->PushPoint()->Await();
  ShrinkPool(*device);
  return static_cast<CUresult>(device->lost.load());
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  MR_ENTER("cuCtxGetStreamPriorityRange");
  MR_CURRENT(device);
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

// ── Streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  MR_ENTER("cuStreamCreateWithPriority", "priority=" + std::to_string(priority));
  MR_CURRENT(device);
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  auto made = std::make_shared<Stream>(*device, world.next_number++, std::clamp(priority, -5, 0));
  made->Start();
  *stream = reinterpret_cast<CUstream>(made.get());
  device->streams.insert(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  MR_ENTER("cuStreamGetCtx");
  MR_CURRENT(device);
  Stream* const found = FindStream(stream, *device);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *context = reinterpret_cast<CUcontext>(&found->device);
  return CUDA_SUCCESS;
}

/// For tests, which look it up by name in a real driver too.
__attribute__((visibility("default"))) CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  *priority = queue->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  MR_ENTER("cuStreamDestroy", Name(stream));
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  const std::shared_ptr<Stream> ended = reinterpret_cast<Stream*>(stream)->shared_from_this();
  if (ended->device.streams.erase(ended) == 0) return CUDA_ERROR_INVALID_HANDLE;
  ended->End();
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
  MR_ENTER("cuStreamQuery", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  ++device->questions;
  return queue->IsIdle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream stream) {
  MR_ENTER("cuStreamSynchronize", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (queue->BreakCapture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  queue->PushPoint()->Await();
  ShrinkPool(*device);
  return static_cast<CUresult>(device->lost.load());
}

}  // extern "C"

}  // namespace millrace::cuda
