// The fake driver's memory: allocation, page-locking, copies, fills and word writes.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "entry.h"
#include "options.h"

namespace millrace::fake_cuda {

namespace {

using cuda::CUdeviceptr;

/// New memory holds this, so that nobody finds zeros by luck. Only its beginning: tests also allocate gigabytes.
constexpr int kPoison = 0xcd;
constexpr size_t kPoisonedBytes = 64 << 10;

CUresult Allocate(Device& device, size_t bytes, Range::Kind kind, void** address) {
  if (bytes == 0) return cuda::CUDA_ERROR_INVALID_VALUE;
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  const bool is_device = kind == Range::Kind::kDevice;
  if (is_device && (bytes > GetOptions().memory_bytes || device.used_bytes > GetOptions().memory_bytes - bytes)) {
    return cuda::CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*address == nullptr) return cuda::CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*address, kPoison, std::min(bytes, kPoisonedBytes));
  if (is_device) device.used_bytes += bytes;
  world.ranges[reinterpret_cast<uintptr_t>(*address)] = {bytes, kind, &device};
  return cuda::CUDA_SUCCESS;
}

CUresult Release(uintptr_t address, Range::Kind kind, CUresult otherwise) {
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  const auto range = world.ranges.find(address);
  if (range == world.ranges.end() || range->second.kind != kind) return otherwise;
  world.Erase(range);
  return cuda::CUDA_SUCCESS;
}

bool IsKnown(CUdeviceptr address, uint64_t bytes) {
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  return world.Find(address, bytes) != world.ranges.end();
}

template <typename T>
CUresult Memset(CUdeviceptr dst, T value, size_t count, cuda::CUstream stream) {
  if (&FromHandle(stream)->device != CurrentDevices().back()) return cuda::CUDA_ERROR_INVALID_HANDLE;
  if (dst % sizeof(T) != 0 || !IsKnown(dst, count * sizeof(T))) return cuda::CUDA_ERROR_INVALID_VALUE;
  PushWork(*FromHandle(stream), [=] { std::fill_n(reinterpret_cast<T*>(dst), count, value); });
  return cuda::CUDA_SUCCESS;
}

}  // namespace

void PushWork(Stream& stream, std::function<void()> work) {
  stream.Push([work = std::move(work)] {
    if (GetOptions().delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(GetOptions().delay_us));
    work();
  });
}

}  // namespace millrace::fake_cuda

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  MR_ENTER("cuMemAlloc", "bytes=" + std::to_string(bytes));
  MR_CURRENT(device);
  return Allocate(*device, bytes, Range::Kind::kDevice, reinterpret_cast<void**>(address));
}

CUresult cuMemFree(CUdeviceptr address) {
  MR_ENTER("cuMemFree");
  MR_CURRENT(device);
  return Release(address, Range::Kind::kDevice, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  MR_ENTER("cuMemAllocAsync", "bytes=" + std::to_string(bytes) + " " + Name(stream));
  MR_CURRENT(device);
  return Allocate(FromHandle(stream)->device, bytes, Range::Kind::kDevice, reinterpret_cast<void**>(address));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  MR_ENTER("cuMemFreeAsync", Name(stream));
  MR_CURRENT(device);
  if (!IsKnown(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  FromHandle(stream)->Push([=] { Release(address, Range::Kind::kDevice, CUDA_SUCCESS); });
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  MR_ENTER("cuDeviceGetDefaultMemPool");
  *pool = reinterpret_cast<CUmemoryPool>(GetWorld().devices[static_cast<size_t>(device)].get());
  return CUDA_SUCCESS;
}

// Freed memory goes back at once here, so there is nothing to trim.
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  MR_ENTER("cuMemPoolTrimTo");
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute, void* value) {
  MR_ENTER("cuMemPoolGetAttribute");
  // Nothing is kept back: what is reserved is what is used.
  const std::lock_guard lock(GetWorld().mutex);
  *static_cast<uint64_t*>(value) = reinterpret_cast<Device*>(pool)->used_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  MR_ENTER("cuMemGetInfo");
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  *total = GetOptions().memory_bytes;
  *free = *total - device->used_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned int) {
  MR_ENTER("cuMemHostAlloc", "bytes=" + std::to_string(bytes));
  MR_CURRENT(device);
  return Allocate(*device, bytes, Range::Kind::kHost, address);
}

CUresult cuMemFreeHost(void* address) {
  MR_ENTER("cuMemFreeHost");
  MR_CURRENT(device);
  return Release(reinterpret_cast<uintptr_t>(address), Range::Kind::kHost, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister(void* address, size_t bytes, unsigned int) {
  MR_ENTER("cuMemHostRegister", "bytes=" + std::to_string(bytes));
  MR_CURRENT(device);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  const auto first = reinterpret_cast<uintptr_t>(address);
  for (const auto& [begin, range] : world.ranges) {
    if (begin < first + bytes && first < begin + range.bytes) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  world.ranges[first] = {bytes, Range::Kind::kRegistered, device};
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* address) {
  MR_ENTER("cuMemHostUnregister");
  MR_CURRENT(device);
  return Release(reinterpret_cast<uintptr_t>(address), Range::Kind::kRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* device_address, void* address, unsigned int) {
  MR_ENTER("cuMemHostGetDevicePointer");
  MR_CURRENT(device);
  *device_address = reinterpret_cast<CUdeviceptr>(address);
  return IsKnown(*device_address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  MR_ENTER("cuMemcpyAsync", "bytes=" + std::to_string(bytes) + " " + Name(stream));
  MR_CURRENT(device);
  if (&FromHandle(stream)->device != device) return CUDA_ERROR_INVALID_HANDLE;
  if (!IsKnown(dst, bytes) || !IsKnown(src, bytes)) return CUDA_ERROR_INVALID_VALUE;
  PushWork(*FromHandle(stream),
           [=] { std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes); });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  MR_ENTER("cuMemsetD8Async", Name(stream));
  MR_CURRENT(device);
  return Memset(dst, value, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  MR_ENTER("cuMemsetD16Async", Name(stream));
  MR_CURRENT(device);
  return Memset(dst, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  MR_ENTER("cuMemsetD32Async", Name(stream));
  MR_CURRENT(device);
  return Memset(dst, value, count, stream);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int) {
  MR_ENTER("cuStreamWriteValue64", Name(stream) + " value=" + std::to_string(value));
  MR_CURRENT(device);
  if (&FromHandle(stream)->device != device) return CUDA_ERROR_INVALID_HANDLE;
  if (address % 8 != 0 || !IsKnown(address, 8)) return CUDA_ERROR_INVALID_VALUE;
  FromHandle(stream)->Push([=] { __atomic_store_n(reinterpret_cast<uint64_t*>(address), value, __ATOMIC_SEQ_CST); });
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda
