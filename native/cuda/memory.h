// Device memory, memory both sides see, and page-locked ranges of memory that belongs to others.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// Stream-ordered memory from the device's pool, or plain memory on a device without pools.
class Memory final : public hal::Memory {
 public:
  /// Valid for work of `stream` that follows. `has_pools`: take it from the device's default pool. Thread: channel.
  static Result<std::unique_ptr<Memory>> Allocate(std::shared_ptr<Context> context, CUstream stream, uint64_t bytes,
                                                  bool has_pools);
  /// Memory that nobody freed goes with the device: this waits for it. Thread: any.
  ~Memory() override;

  [[nodiscard]] std::byte* address() const override { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

  /// Gives it back after earlier work of `stream`. Thread: channel.
  Status Free(CUstream stream);

 private:
  Memory(std::shared_ptr<Context> context, CUdeviceptr address, uint64_t bytes, bool is_pooled)
      : context_(std::move(context)), address_(address), bytes_(bytes), is_pooled_(is_pooled) {}

  const std::shared_ptr<Context> context_;
  CUdeviceptr address_;
  const uint64_t bytes_;
  const bool is_pooled_;
  bool is_freed_ = false;
};

/// Zeroed host memory that kernels reach at the same address.
class SharedMemory final : public hal::Memory {
 public:
  static Result<std::unique_ptr<hal::Memory>> Allocate(std::shared_ptr<Context> context, uint64_t bytes);
  ~SharedMemory() override;

  [[nodiscard]] std::byte* address() const override { return address_; }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  SharedMemory(std::shared_ptr<Context> context, std::byte* address, uint64_t bytes)
      : context_(std::move(context)), address_(address), bytes_(bytes) {}

  const std::shared_ptr<Context> context_;
  std::byte* const address_;
  const uint64_t bytes_;
};

/// Page-locks a range for every device of the process. The driver takes a range once, however many devices want it, so
/// ranges are counted here; the context that registered one lives until its last user let go. Thread: any.
Status RegisterHostRange(const std::shared_ptr<Context>& context, std::span<std::byte> range);
Status UnregisterHostRange(std::span<std::byte> range);

}  // namespace millrace::cuda
