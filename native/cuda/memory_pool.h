// The device's default pool, from which arrays are allocated.
//
// Other users of the process's context (CuPy, PyTorch, another addon) may allocate from the same pool and set its
// threshold. The numbers here cover the whole pool. With the driver's release threshold, 0, each synchronization would
// unmap what was freed, and the next allocation map it again: some 40 us. So a threshold of 0 is raised when the device
// opens. It applies to those users too, as does the attribute that disables implicit waits between streams.
#pragma once

#include <memory>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// Thread: any; the driver locks its pools. Every call returns kUnsupported on a device without pools.
class MemoryPool {
 public:
  /// Finds the pool, which then keeps so much unless it keeps some already, also after the device is closed; `handle`
  /// stays null if the device or driver has none. With the context current.
  Status Find(std::shared_ptr<Context> context, uint64_t kept_bytes);
  [[nodiscard]] CUmemoryPool handle() const { return handle_; }

  [[nodiscard]] Result<hal::PoolStats> Use() const;
  /// Unused bytes that the pool holds; 0 when unknown.
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
