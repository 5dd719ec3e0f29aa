// Device memory, memory that both sides access, and page-locked ranges of the caller's memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// Device memory: stream-ordered memory from the device's pool, plain memory on a device without pools, memory that
/// other processes can open, or another process's memory opened here.
class Memory final : public hal::Memory {
 public:
  /// Valid for later work of `stream`. `has_pools`: allocates from the device's default pool. Thread: channel.
  static Result<std::unique_ptr<Memory>> Allocate(std::shared_ptr<Context> context, CUstream stream, uint64_t bytes,
                                                  bool has_pools);
  /// A separate allocation. May block. Thread: control.
  static Result<std::unique_ptr<Memory>> AllocateInterprocess(std::shared_ptr<Context> context, uint64_t bytes);
  /// Opens at least `bytes` of another process's memory. Thread: control.
  static Result<std::unique_ptr<Memory>> Open(std::shared_ptr<Context> context, const hal::IpcHandle& handle,
                                              uint64_t bytes);
  /// A CUDA array, whose address is its CUarray. May block. Thread: blocking calls.
  static Result<std::unique_ptr<Memory>> AllocateArray(std::shared_ptr<Context> context,
                                                       const protocol::TextureShape& shape);
  /// A texture or surface object, which is its address. Thread: channel.
  static Result<std::unique_ptr<Memory>> CreateTexture(std::shared_ptr<Context> context,
                                                       const hal::TextureRequest& request);
  /// Waits for the device if the memory was not freed before. Thread: any.
  ~Memory() override;

  [[nodiscard]] std::byte* address() const override { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

  /// The allocation's actual size in bytes.
  [[nodiscard]] uint64_t capacity() const { return capacity_; }

  /// Thread: channel.
  [[nodiscard]] Result<hal::IpcHandle> Export() const;

  /// Frees it after earlier work of `stream`. Thread: channel. Not if IsFreedLate.
  Status Free(CUstream stream);

  /// Whether the driver can free it only by waiting for the device: then the reaper owns it (reaper.h).
  [[nodiscard]] bool IsFreedLate() const { return origin_ != Origin::kPool && origin_ != Origin::kPlain; }
  /// Whether it is a texture or surface object. The driver destroys it without waiting, so no running work may use it.
  [[nodiscard]] bool IsObject() const { return origin_ == Origin::kTexture || origin_ == Origin::kSurface; }
  /// Whether it belongs to another process.
  [[nodiscard]] bool IsOpened() const { return origin_ == Origin::kOpened; }
  /// Whether a new allocation may reuse it once it is unused here: only if its handle was never exported. Otherwise
  /// another process may still have it mapped, and would see later contents.
  [[nodiscard]] bool IsReusable() const { return origin_ == Origin::kInterprocess && !is_exported_; }
  /// Whether `bytes` fit and leave only a small part unused.
  [[nodiscard]] bool Suits(uint64_t bytes) const;
  /// Makes it an allocation of `bytes`, which it suits.
  void Reuse(uint64_t bytes) { bytes_ = bytes; }
  /// Frees memory that is no longer used. May wait for the device. Thread: any, with the context current.
  Status Release();

 private:
  enum class Origin { kPool, kPlain, kInterprocess, kOpened, kArray, kTexture, kSurface };

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

/// Page-locked host memory, zeroed, at the same address for every device. The library maps it, in huge pages where it
/// is large, and the driver locks it: that takes a tenth of the time of cuMemHostAlloc, which also makes the pages, 4
/// KiB at a time.
class LockedBlock {
 public:
  /// Of at least `bytes`, in whole pages. `may_be_unlocked`: where the system locks no more memory, the block is not
  /// locked. The driver copies to and from it all the same, and blocks the caller meanwhile. Thread: any.
  static Result<std::unique_ptr<LockedBlock>> Allocate(std::shared_ptr<Context> context, uint64_t bytes,
                                                       bool may_be_unlocked = false);
  /// If the device is lost, the pages stay mapped: it may still write them.
  ~LockedBlock();

  LockedBlock(const LockedBlock&) = delete;
  LockedBlock& operator=(const LockedBlock&) = delete;

  [[nodiscard]] std::byte* data() const { return pages_.data(); }
  [[nodiscard]] uint64_t bytes() const { return pages_.size(); }
  [[nodiscard]] bool is_locked() const { return is_locked_; }

 private:
  LockedBlock(std::shared_ptr<Context> context, std::span<std::byte> pages, bool is_locked)
      : context_(std::move(context)), pages_(pages), is_locked_(is_locked) {}

  const std::shared_ptr<Context> context_;
  const std::span<std::byte> pages_;
  const bool is_locked_;
};

/// Zeroed host memory that kernels access at the same address.
class SharedMemory final : public hal::Memory {
 public:
  static Result<std::unique_ptr<hal::Memory>> Allocate(std::shared_ptr<Context> context, uint64_t bytes);

  [[nodiscard]] std::byte* address() const override { return block_->data(); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  SharedMemory(std::unique_ptr<LockedBlock> block, uint64_t bytes) : block_(std::move(block)), bytes_(bytes) {}

  const std::unique_ptr<LockedBlock> block_;
  const uint64_t bytes_;
};

/// Page-locks a range for every device of the process. The driver registers a range only once, so this counts users per
/// range; the context that registered it lives until the last user unregisters. Thread: any.
Status RegisterHostRange(const std::shared_ptr<Context>& context, std::span<std::byte> range);
Status UnregisterHostRange(std::span<std::byte> range);

}  // namespace millrace::cuda
