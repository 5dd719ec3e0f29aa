// The fake driver's peers, pools, and memory of other processes.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "entry.h"
#include "options.h"

namespace millrace::fake_cuda {

namespace {

/// The content of a memory handle.
struct MemHandle {
  int process;
  int file;
  int ordinal;
  uint64_t bytes;
};

bool CanReach(int device, int peer) {
  const auto count = static_cast<int>(GetWorld().devices.size());
  return GetOptions().has_peers && device != peer && device >= 0 && peer >= 0 && device < count && peer < count;
}

ThreadPool& PoolOf(cuda::CUmemoryPool pool) {
  return reinterpret_cast<Device*>(pool)->pool;
}

uint64_t* Field(ThreadPool& pool, cuda::CUmemPool_attribute attribute) {
  switch (attribute) {
    case cuda::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool.threshold;
    case cuda::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &pool.reserved;
    case cuda::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool.reserved_high;
    case cuda::CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &pool.used;
    case cuda::CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool.used_high;
    default:
      return nullptr;
  }
  return nullptr;
}

/// Attributes whose value is an int.
bool IsSwitch(cuda::CUmemPool_attribute attribute) {
  return attribute >= cuda::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= cuda::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

/// Whether either device may access the other's memory, pool or not.
bool HaveAccess(Device& a, Device& b) {
  return a.peers.contains(b.ordinal) || b.peers.contains(a.ordinal) || a.pool.readers.contains(b.ordinal) ||
         b.pool.readers.contains(a.ordinal);
}

}  // namespace

void ShrinkPool(Device& device) {
  const std::lock_guard lock(GetWorld().mutex);
  device.pool.Shrink(device.pool.threshold);
}

}  // namespace millrace::fake_cuda

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

// ── Peers ────────────────────────────────────────────────────────────────────────────────────────────────────────────

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  MR_ENTER("cuDeviceCanAccessPeer");
  *can = CanReach(device, peer);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  MR_ENTER("cuCtxGetLimit");
  MR_CURRENT(device);
  if (limit != CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(GetWorld().mutex);
  *value = device->pending_launches;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  MR_ENTER("cuCtxSetLimit", "value=" + std::to_string(value));
  MR_CURRENT(device);
  if (limit != CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(GetWorld().mutex);
  device->pending_launches = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  MR_ENTER("cuCtxEnablePeerAccess");
  MR_CURRENT(device);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!CanReach(device->ordinal, FromHandle(peer)->ordinal)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::lock_guard lock(GetWorld().mutex);
  const bool is_new = device->peers.insert(FromHandle(peer)->ordinal).second;
  return is_new ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  MR_ENTER("cuCtxDisablePeerAccess");
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  return device->peers.erase(FromHandle(peer)->ordinal) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

/// For tests: whether the context of `device` may access memory of `peer` outside its pool.
__attribute__((visibility("default"))) bool fake_cuda_reaches(int device, int peer) {
  const std::lock_guard lock(GetWorld().mutex);
  return GetWorld().devices[static_cast<size_t>(device)]->peers.contains(peer);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
                           CUstream stream) {
  MR_ENTER("cuMemcpyPeerAsync", "bytes=" + std::to_string(bytes) + " " + Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  Device* const ends[] = {FromHandle(dst_context), FromHandle(src_context)};
  bool is_broken = false;
  {
    World& world = GetWorld();
    const std::lock_guard lock(world.mutex);
    for (int i = 0; i < 2; ++i) {
      if (const int lost = ends[i]->lost.load(); lost != 0) return static_cast<CUresult>(lost);
      const auto range = world.Find(i == 0 ? dst : src, bytes);
      if (range == world.ranges.end() || !range->second.IsDevice() || range->second.device != ends[i]) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    is_broken = ends[0] != ends[1] && ArePeersBroken(HaveAccess(*ends[0], *ends[1]));
  }
  PushCopy(*queue, [=] {
    if (is_broken) {
      std::memset(reinterpret_cast<void*>(dst), 0, bytes);
    } else {
      std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
    }
  });
  return CUDA_SUCCESS;
}

// ── Pools ────────────────────────────────────────────────────────────────────────────────────────────────────────────

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  MR_ENTER("cuDeviceGetDefaultMemPool");
  *pool = reinterpret_cast<CUmemoryPool>(GetWorld().devices[static_cast<size_t>(device)].get());
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes) {
  MR_ENTER("cuMemPoolTrimTo", "keep=" + std::to_string(keep_bytes));
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(GetWorld().mutex);
  PoolOf(pool).Shrink(keep_bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  MR_ENTER("cuMemPoolGetAttribute", std::to_string(attribute));
  const std::lock_guard lock(GetWorld().mutex);
  if (IsSwitch(attribute)) {
    *static_cast<int*>(value) = PoolOf(pool).may_reuse[attribute];
    return CUDA_SUCCESS;
  }
  const uint64_t* const field = Field(PoolOf(pool), attribute);
  if (field == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<uint64_t*>(value) = *field;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  MR_ENTER("cuMemPoolSetAttribute", std::to_string(attribute));
  const std::lock_guard lock(GetWorld().mutex);
  ThreadPool& changed = PoolOf(pool);
  if (IsSwitch(attribute)) {
    changed.may_reuse[attribute] = *static_cast<const int*>(value);
    return CUDA_SUCCESS;
  }
  const uint64_t wanted = *static_cast<const uint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      changed.threshold = wanted;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      changed.reserved_high = changed.reserved;
      return wanted == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      changed.used_high = changed.used;
      return wanted == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* list, size_t count) {
  MR_ENTER("cuMemPoolSetAccess");
  const int owner = reinterpret_cast<Device*>(pool)->ordinal;
  const std::lock_guard lock(GetWorld().mutex);
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccessDesc& entry = list[i];
    if (entry.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!CanReach(entry.location.id, owner)) return CUDA_ERROR_INVALID_DEVICE;
    if (entry.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      PoolOf(pool).readers.insert(entry.location.id);
    } else {
      PoolOf(pool).readers.erase(entry.location.id);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  MR_ENTER("cuMemPoolGetAccess");
  const bool is_own = reinterpret_cast<Device*>(pool)->ordinal == location->id;
  const std::lock_guard lock(GetWorld().mutex);
  *flags = is_own || PoolOf(pool).readers.contains(location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

// ── Other processes ──────────────────────────────────────────────────────────────────────────────────────────────────

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  MR_ENTER("cuIpcGetMemHandle");
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  const auto range = GetWorld().ranges.find(address);
  if (range == GetWorld().ranges.end() || range->second.kind != Range::Kind::kDevice) return CUDA_ERROR_INVALID_VALUE;
  const MemHandle said = {getpid(), range->second.file, device->ordinal, range->second.bytes};
  *handle = {};
  std::memcpy(handle, &said, sizeof(said));
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  MR_ENTER("cuIpcOpenMemHandle");
  MR_CURRENT(device);
  MemHandle said;
  std::memcpy(&said, &handle, sizeof(said));
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (said.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (said.ordinal != device->ordinal) return CUDA_ERROR_INVALID_VALUE;
  void* const mapped = MapTheirs(said.process, said.file, said.bytes);
  if (mapped == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(GetWorld().mutex);
  *address = reinterpret_cast<CUdeviceptr>(mapped);
  GetWorld().ranges[*address] = {said.bytes, Range::Kind::kOpened, device};
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  MR_ENTER("cuIpcCloseMemHandle");
  MR_CURRENT(device);
  AwaitWork(*device);
  const std::lock_guard lock(GetWorld().mutex);
  const auto range = GetWorld().ranges.find(address);
  if (range == GetWorld().ranges.end() || range->second.kind != Range::Kind::kOpened) return CUDA_ERROR_INVALID_VALUE;
  GetWorld().Erase(range);
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda
