#include "cuda/memory_pool.h"

#include "cuda/context_scope.h"

namespace millrace::cuda {

Status MemoryPool::Find(std::shared_ptr<Context> context, uint64_t kept_bytes) {
  context_ = std::move(context);
  int has_pools = 0;
  MR_TRY(context_->Check(
      Cuda().cuDeviceGetAttribute(&has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, context_->device()),
      "querying whether the device has memory pools"));
  if (has_pools == 0) return {};
  const CUresult code = Cuda().cuDeviceGetDefaultMemPool(&handle_, context_->device());
  if (code != CUDA_SUCCESS) handle_ = nullptr;
  if (code == CUDA_ERROR_NOT_FOUND) return {};
  MR_TRY(context_->Check(code, "finding the device's pool"));
  MR_TRY(ForbidHiddenOrder());
  Result<uint64_t> threshold = ReleaseThreshold();
  MR_TRY(threshold.status());
  return threshold.value() == 0 ? SetReleaseThreshold(kept_bytes) : Status();
}

Status MemoryPool::ForbidHiddenOrder() const {
  // When memory is short, the driver would make a stream wait for another stream's free: an implicit order that could
  // deadlock with work that is submitted later. With this disabled, the allocation fails, and the channel parks the
  // stream until a free completes. The driver's other two kinds of reuse stay enabled, since they add no order: after a
  // wait that the caller made, and after a completed free.
  int is_allowed = 0;
  return context_->Check(
      Cuda().cuMemPoolSetAttribute(handle_, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &is_allowed),
      "setting up the pool");
}

Status MemoryPool::Ready() const {
  if (handle_ == nullptr) return {StatusCode::kUnsupported, "using the pool of a device without one"};
  return context_->Alive();
}

Status MemoryPool::Read(CUmemPool_attribute attribute, uint64_t* value) const {
  return context_->Check(Cuda().cuMemPoolGetAttribute(handle_, attribute, value), "reading the pool");
}

Status MemoryPool::Write(CUmemPool_attribute attribute, uint64_t value) const {
  return context_->Check(Cuda().cuMemPoolSetAttribute(handle_, attribute, &value), "setting up the pool");
}

Result<hal::PoolStats> MemoryPool::Use() const {
  MR_TRY(Ready());
  hal::PoolStats stats;
  MR_TRY(Read(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &stats.used));
  MR_TRY(Read(CU_MEMPOOL_ATTR_USED_MEM_HIGH, &stats.used_high));
  MR_TRY(Read(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &stats.reserved));
  MR_TRY(Read(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &stats.reserved_high));
  const ContextScope scope(context_->handle());
  MR_TRY(context_->Check(scope.code(), "making the context current"));
  size_t free = 0;
  size_t total = 0;
  MR_TRY(context_->Check(Cuda().cuMemGetInfo(&free, &total), "reading the device's memory"));
  stats.free = free;
  stats.total = total;
  return stats;
}

uint64_t MemoryPool::UnusedBytes() const {
  uint64_t reserved = 0;
  uint64_t used = 0;
  if (handle_ == nullptr || !Read(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved).ok()) return 0;
  if (!Read(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used).ok()) return 0;
  return reserved > used ? reserved - used : 0;
}

Result<uint64_t> MemoryPool::ReleaseThreshold() const {
  MR_TRY(Ready());
  uint64_t bytes = 0;
  MR_TRY(Read(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
  return bytes;
}

Status MemoryPool::SetReleaseThreshold(uint64_t bytes) const {
  MR_TRY(Ready());
  return Write(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes);
}

Status MemoryPool::Trim(uint64_t keep_bytes) const {
  MR_TRY(Ready());
  return context_->Check(Cuda().cuMemPoolTrimTo(handle_, keep_bytes), "trimming the pool");
}

Status MemoryPool::ResetHighWater() const {
  MR_TRY(Ready());
  // The driver accepts only 0, and restarts from the current use and reservation.
  MR_TRY(Write(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0));
  return Write(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
}

}  // namespace millrace::cuda
