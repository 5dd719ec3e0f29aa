// The device's default pool: where arrays come from.
//
// Other users of the process's context (CuPy, PyTorch, an addon of its own) may take from the same pool and set its
// threshold. What is told here is the whole pool's, theirs included. The release threshold stays what the driver makes
// it, 0, until somebody sets it. That streams never wait for each other behind the program's back is set for them too.
#pragma once

#include <memory>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// Thread: any; the driver guards its pools. Every call answers kUnsupported on a device without pools.
class MemoryPool {
 public:
  /// Finds the pool; `handle` stays null on a device or a driver that has none. With the context current.
  Status Find(std::shared_ptr<Context> context);
  [[nodiscard]] CUmemoryPool handle() const { return handle_; }

  [[nodiscard]] Result<hal::PoolStats> Use() const;
  /// What it keeps from the driver without using it; 0 where that cannot be told.
  [[nodiscard]] uint64_t UnusedBytes() const;
  [[nodiscard]] Result<uint64_t> ReleaseThreshold() const;
  Status SetReleaseThreshold(uint64_t bytes) const;
  Status Trim(uint64_t keep_bytes) const;
  Status ResetHighWater() const;

 private:
  [[nodiscard]] Status Ready() const;
  Status ForbidHiddenOrder() const;
  Status Read(CUmemPool_attribute attribute, uint64_t* value) const;
  Status Write(CUmemPool_attribute attribute, uint64_t value) const;

  std::shared_ptr<Context> context_;
  CUmemoryPool handle_ = nullptr;
};

}  // namespace millrace::cuda
