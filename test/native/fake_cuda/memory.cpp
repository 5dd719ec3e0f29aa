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

/// Fill value of new memory, so that no test finds zeros by accident. Only at the beginning: tests also allocate
/// gigabytes.
constexpr int kPoison = 0xcd;
constexpr size_t kPoisonedBytes = 64 << 10;

/// The device's free memory, including the pool's cache. Needs the world's mutex.
bool HasRoom(const Device& device, size_t bytes) {
  const uint64_t used = device.used_bytes + device.pool.InUse();
  return bytes <= GetOptions().memory_bytes && used <= GetOptions().memory_bytes - bytes;
}

/// The pending frees that would make room if the stream waited for them; none if they do not suffice or the pool
/// forbids it. Like a real pool, this adds an implicit order. Needs the world's mutex.
std::vector<std::shared_ptr<Point>> HiddenWaits(Device& device, size_t bytes) {
  std::vector<std::shared_ptr<Point>> waits;
  ThreadPool& pool = device.pool;
  std::erase_if(pool.freeing, [](const ThreadPool::Freeing& each) { return each.freed->IsReached(); });
  if (pool.may_reuse[cuda::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] == 0) return waits;
  uint64_t coming = 0;
  for (const ThreadPool::Freeing& each : pool.freeing) {
    coming += each.bytes;
    waits.push_back(each.freed);
    if (device.used_bytes + device.pool.InUse() + bytes <= GetOptions().memory_bytes + coming) return waits;
  }
  return {};
}

/// `queue`: the stream that receives pool memory.
CUresult Allocate(Device& device, size_t bytes, Range::Kind kind, void** address, Stream* queue = nullptr) {
  if (bytes == 0) return cuda::CUDA_ERROR_INVALID_VALUE;
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  if (kind != Range::Kind::kHost && !HasRoom(device, bytes)) {
    const std::vector<std::shared_ptr<Point>> waits =
        queue == nullptr ? std::vector<std::shared_ptr<Point>>() : HiddenWaits(device, bytes);
    if (waits.empty()) return cuda::CUDA_ERROR_OUT_OF_MEMORY;
    for (const std::shared_ptr<Point>& point : waits) queue->Push([point] { point->Await(); });
  }
  Range range = {bytes, kind, &device};
  *address =
      kind == Range::Kind::kDevice ? MapNew(bytes, &range.file) : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*address == nullptr) return cuda::CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*address, kPoison, std::min(bytes, kPoisonedBytes));
  if (kind == Range::Kind::kDevice) device.used_bytes += bytes;
  if (kind == Range::Kind::kPool) {
    ThreadPool& pool = device.pool;
    pool.used += bytes;
    pool.used_high = std::max(pool.used_high, pool.used);
    pool.reserved = std::max(pool.reserved, pool.InUse());
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  }
  // Memory that other processes use does not stay reserved here.
  device.pool.Shrink(GetOptions().memory_bytes - device.used_bytes);
  world.ranges[reinterpret_cast<uintptr_t>(*address)] = range;
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

/// cuMemFree of pool memory: it returns to the device but stays counted as used. False for other memory.
bool ReleaseOfPool(Device& device, CUdeviceptr address) {
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  const auto range = world.ranges.find(address);
  if (range == world.ranges.end() || range->second.kind != Range::Kind::kPool) return false;
  const uint64_t bytes = range->second.bytes;
  world.Erase(range);
  ThreadPool& pool = device.pool;
  pool.used += bytes;
  pool.miscounted += bytes;
  pool.Shrink(pool.reserved - std::min(pool.reserved, bytes));
  return true;
}

}  // namespace

bool Reaches(Device& device, CUdeviceptr address, uint64_t bytes) {
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  const auto found = world.Find(address, bytes);
  if (found == world.ranges.end()) return false;
  const Range& range = found->second;
  if (!range.IsDevice() || range.device == &device) return true;
  return range.kind == Range::Kind::kPool ? range.device->pool.readers.contains(device.ordinal)
                                          : device.peers.contains(range.device->ordinal);
}

bool IsKnown(CUdeviceptr address, uint64_t bytes) {
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  return world.Find(address, bytes) != world.ranges.end();
}

namespace {

/// Whether these bytes are page-locked host memory.
bool IsHost(CUdeviceptr address, uint64_t bytes) {
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  const auto found = world.Find(address, bytes);
  return found != world.ranges.end() && !found->second.IsDevice();
}

template <typename T>
CUresult Memset(Device* device, CUdeviceptr dst, T value, size_t count, cuda::CUstream stream) {
  MR_STREAM(queue, stream, device);
  if (dst % sizeof(T) != 0 || !Reaches(*device, dst, count * sizeof(T))) return cuda::CUDA_ERROR_INVALID_VALUE;
  PushCopy(*queue, [=] { std::fill_n(reinterpret_cast<T*>(dst), count, value); });
  // Like a real driver: the caller waits until the stream has reached that point.
  if (!IsHost(dst, count * sizeof(T))) return cuda::CUDA_SUCCESS;
  queue->PushPoint()->Await();
  return static_cast<CUresult>(device->lost.load());
}

}  // namespace

void AwaitWork(Device& device) {
  std::set<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(GetWorld().mutex);
    streams = device.streams;
    if (device.legacy != nullptr) streams.insert(device.legacy);
  }
  ++device.frees;
  std::erase_if(streams, [](const std::shared_ptr<Stream>& stream) { return stream->IsIdle(); });
  if (!streams.empty()) ++device.waiting_frees;
  for (const std::shared_ptr<Stream>& stream : streams) stream->PushPoint()->Await();
}

void PushWork(Stream& stream, std::function<void()> work) {
  if (stream.Captures(work)) return;
  stream.Push([work = std::move(work)] {
    if (GetOptions().delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(GetOptions().delay_us));
    work();
  });
}

void PushCopy(Stream& stream, std::function<void()> copy) {
  PushWork(stream, [&device = stream.device, copy = std::move(copy)] {
    const std::shared_lock lock(device.using_memory);
    if (device.lost.load() == 0) copy();
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
  if (ReleaseOfPool(*device, address)) return CUDA_SUCCESS;
  AwaitWork(*device);
  return Release(address, Range::Kind::kDevice, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  MR_ENTER("cuMemAllocAsync", "bytes=" + std::to_string(bytes) + " " + Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  return Allocate(queue->device, bytes, Range::Kind::kPool, reinterpret_cast<void**>(address), queue);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  MR_ENTER("cuMemFreeAsync", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  uint64_t bytes = 0;
  {
    const std::lock_guard lock(GetWorld().mutex);
    const auto range = GetWorld().ranges.find(address);
    if (range == GetWorld().ranges.end() || range->second.kind != Range::Kind::kPool) return CUDA_ERROR_INVALID_VALUE;
    bytes = range->second.bytes;
  }
  queue->Push([=] { Release(address, Range::Kind::kPool, CUDA_SUCCESS); });
  const std::shared_ptr<Point> freed = queue->PushPoint();
  const std::lock_guard lock(GetWorld().mutex);
  queue->device.pool.freeing.push_back({freed, bytes});
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  MR_ENTER("cuMemGetInfo");
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  *total = GetOptions().memory_bytes;
  *free = *total - device->used_bytes - device->pool.reserved;
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

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  MR_ENTER("cuPointerGetAttribute");
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  const auto range = GetWorld().Find(address, 1);
  if (range == GetWorld().ranges.end()) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    *static_cast<int*>(value) = range->second.device->ordinal;
    return CUDA_SUCCESS;
  }
  *static_cast<CUmemorytype*>(value) = range->second.IsDevice() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  MR_ENTER("cuMemcpyAsync", "bytes=" + std::to_string(bytes) + " " + Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (!Reaches(*device, dst, bytes) || !Reaches(*device, src, bytes)) return CUDA_ERROR_INVALID_VALUE;
  PushCopy(*queue, [=] { std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes); });
  return CUDA_SUCCESS;
}

/// These take pageable memory of the host, too. Then they return when the copy is complete.
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  MR_ENTER("cuMemcpyHtoDAsync", "bytes=" + std::to_string(bytes) + " " + Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (!Reaches(*device, dst, bytes)) return CUDA_ERROR_INVALID_VALUE;
  PushCopy(*queue, [=] { std::memcpy(reinterpret_cast<void*>(dst), src, bytes); });
  return cuStreamSynchronize(stream);
}

CUresult cuMemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  MR_ENTER("cuMemcpyDtoHAsync", "bytes=" + std::to_string(bytes) + " " + Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (!Reaches(*device, src, bytes)) return CUDA_ERROR_INVALID_VALUE;
  PushCopy(*queue, [=] { std::memcpy(dst, reinterpret_cast<const void*>(src), bytes); });
  return cuStreamSynchronize(stream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* attribute_indices, size_t attribute_count,
                            size_t* failed, CUstream stream) {
  MR_ENTER("cuMemcpyBatchAsync", "count=" + std::to_string(count) + " " + Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (stream == nullptr || count == 0 || attribute_count != 1 || attribute_indices[0] != 0 ||
      attributes[0].srcAccessOrder != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  struct Move {
    CUdeviceptr dst, src;
    size_t bytes;
  };
  // The last one first: they have no order.
  std::vector<Move> moves;
  for (size_t n = count; n-- > 0;) {
    if (Reaches(*device, dsts[n], sizes[n]) && Reaches(*device, srcs[n], sizes[n]) && sizes[n] > 0) {
      moves.push_back({dsts[n], srcs[n], sizes[n]});
      continue;
    }
    *failed = n;
    return CUDA_ERROR_INVALID_VALUE;
  }
  PushCopy(*queue, [moves = std::move(moves)] {
    for (const auto& [dst, src, bytes] : moves)
      std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
  });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  MR_ENTER("cuMemsetD8Async", Name(stream));
  MR_CURRENT(device);
  return Memset(device, dst, value, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  MR_ENTER("cuMemsetD16Async", Name(stream));
  MR_CURRENT(device);
  return Memset(device, dst, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  MR_ENTER("cuMemsetD32Async", Name(stream));
  MR_CURRENT(device);
  return Memset(device, dst, value, count, stream);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int) {
  MR_ENTER("cuStreamWriteValue64", Name(stream) + " value=" + std::to_string(value));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (address % 8 != 0 || !IsKnown(address, 8)) return CUDA_ERROR_INVALID_VALUE;
  queue->Push([=] { __atomic_store_n(reinterpret_cast<uint64_t*>(address), value, __ATOMIC_SEQ_CST); });
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda
