// Device memory, memory both sides see, and page-locked ranges of memory that belongs to others.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// Device memory: stream-ordered memory from the device's pool, plain memory on a device without pools, memory that
/// other processes can open, or theirs that this one opened.
class Memory final : public hal::Memory {
 public:
  /// Valid for work of `stream` that follows. `has_pools`: take it from the device's default pool. Thread: channel.
  static Result<std::unique_ptr<Memory>> Allocate(std::shared_ptr<Context> context, CUstream stream, uint64_t bytes,
                                                  bool has_pools);
  /// An allocation of its own. May block. Thread: control.
  static Result<std::unique_ptr<Memory>> AllocateInterprocess(std::shared_ptr<Context> context, uint64_t bytes);
  /// Memory of another process, at least `bytes` of it. Thread: control.
  static Result<std::unique_ptr<Memory>> Open(std::shared_ptr<Context> context, const hal::IpcHandle& handle,
                                              uint64_t bytes);
  /// Memory that nobody freed goes with the device: this waits for it. Thread: any.
  ~Memory() override;

  [[nodiscard]] std::byte* address() const override { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

  /// Bytes that the driver gave for it.
  [[nodiscard]] uint64_t capacity() const { return capacity_; }

  /// Thread: channel.
  [[nodiscard]] Result<hal::IpcHandle> Export() const;

  /// Gives it back after earlier work of `stream`. Thread: channel. Not for memory that is freed late.
  Status Free(CUstream stream);

  /// The driver frees it only at once and after waiting for the device: its owner is then the reaper (reaper.h).
  [[nodiscard]] bool IsFreedLate() const { return origin_ == Origin::kInterprocess || origin_ == Origin::kOpened; }
  /// It is another process's.
  [[nodiscard]] bool IsOpened() const { return origin_ == Origin::kOpened; }
  /// Nobody else was ever let in, so that an allocation may have it when nobody here uses it any more. Whoever was
  /// handed its handle may have it mapped still, and would see what is written there later.
  [[nodiscard]] bool IsReusable() const { return origin_ == Origin::kInterprocess && !is_exported_; }
  /// Whether so many bytes fit without leaving more than a little of it unused.
  [[nodiscard]] bool Suits(uint64_t bytes) const;
  /// It is an allocation of so many bytes now, which it suits.
  void Reuse(uint64_t bytes) { bytes_ = bytes; }
  /// Gives back what nobody uses any more. May wait for the device. Thread: any, with the context current.
  Status Release();

 private:
  enum class Origin { kPool, kPlain, kInterprocess, kOpened };

  Memory(std::shared_ptr<Context> context, CUdeviceptr address, uint64_t bytes, uint64_t capacity, Origin origin)
      : context_(std::move(context)), address_(address), bytes_(bytes), capacity_(capacity), origin_(origin) {}

  const std::shared_ptr<Context> context_;
  CUdeviceptr address_;
  uint64_t bytes_;
  const uint64_t capacity_;
  const Origin origin_;
  mutable bool is_exported_ = false;
  bool is_freed_ = false;
};

/// Page-locked host memory that every device reaches at the same address. Its content is whatever was there.
class LockedBlock {
 public:
  /// May take long: some 0.3 ms a MiB. Thread: any.
  static Result<std::unique_ptr<LockedBlock>> Allocate(std::shared_ptr<Context> context, uint64_t bytes);
  ~LockedBlock();

  LockedBlock(const LockedBlock&) = delete;
  LockedBlock& operator=(const LockedBlock&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  LockedBlock(std::shared_ptr<Context> context, std::byte* data, uint64_t bytes)
      : context_(std::move(context)), data_(data), bytes_(bytes) {}

  const std::shared_ptr<Context> context_;
  std::byte* const data_;
  const uint64_t bytes_;
};

/// Zeroed host memory that kernels reach at the same address.
class SharedMemory final : public hal::Memory {
 public:
  static Result<std::unique_ptr<hal::Memory>> Allocate(std::shared_ptr<Context> context, uint64_t bytes);

  [[nodiscard]] std::byte* address() const override { return block_->data(); }
  [[nodiscard]] uint64_t bytes() const override { return block_->bytes(); }

 private:
  explicit SharedMemory(std::unique_ptr<LockedBlock> block) : block_(std::move(block)) {}

  const std::unique_ptr<LockedBlock> block_;
};

/// Page-locks a range for every device of the process. The driver takes a range once, however many devices want it, so
/// ranges are counted here; the context that registered one lives until its last user let go. Thread: any.
Status RegisterHostRange(const std::shared_ptr<Context>& context, std::span<std::byte> range);
Status UnregisterHostRange(std::span<std::byte> range);

}  // namespace millrace::cuda
