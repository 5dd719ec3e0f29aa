// Memory of a CPU device: host memory within a budget.
//
// The first touch of a fresh page faults: about 0.25 ms per MiB, more than many kernels take. So freed blocks are
// cached by size class, up to a limit, and pipelines that allocate and free the same sizes soon reuse warm pages.
// Stream order needs no handling here: a stream runs a free after everything before it, and only then is the block
// reusable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/hal.h"

namespace millrace::cpu {

/// Default limit of cached bytes. A GPU's pool starts with 0, which keeps memory until the next synchronization; a CPU
/// device has no such point, so with 0 every array would fault in all of its pages again.
inline constexpr uint64_t kDefaultKeptBytes = 256ull << 20;

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t step) {
  return (bytes + step - 1) / step * step;
}

/// Thread: any.
class Heap : public std::enable_shared_from_this<Heap> {
 public:
  explicit Heap(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Allocates from now on between inaccessible pages (guarded_memory.h), and caches nothing, so that accesses to freed
  /// memory fault as well. Before the first allocation.
  void Guard() { is_guarded_ = true; }
  /// Uninitialised memory, aligned to 256 bytes, or to 16 bytes between guards. Never blocks; an allocation of zero
  /// bytes has a unique address.
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> Allocate(uint64_t bytes);
  [[nodiscard]] uint64_t FreeBytes() const;

  /// `reserved` is the bytes in use and in the cache. It never exceeds `total`, the budget.
  [[nodiscard]] hal::PoolStats Use() const;
  void ResetHighWater();
  /// Sets the limit of cached bytes; excess blocks go back to the system at once.
  void Keep(uint64_t bytes);
  [[nodiscard]] uint64_t kept_bytes() const;
  /// Returns cached blocks to the system as long as at least `reserved_bytes` stay reserved, like cuMemPoolTrimTo.
  void Trim(uint64_t reserved_bytes);

 private:
  friend class CpuMemory;
  struct Block {
    std::byte* address;
    uint64_t bytes;
  };

  [[nodiscard]] std::byte* Map(uint64_t bytes, uint64_t block_bytes) const;
  void Unmap(const std::vector<Block>& blocks) const;
  [[nodiscard]] std::byte* Take(uint64_t block_bytes);
  void Release(Block block);
  /// Moves cached blocks, largest first, to `dropped` until at most `kept_bytes` remain. Needs `mutex_`.
  void Evict(uint64_t kept_bytes, std::vector<Block>& dropped);
  /// Needs `mutex_`.
  void NoteHighWater();

  const uint64_t budget_bytes_;
  bool is_guarded_ = false;  // Constant since the first allocation.
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  uint64_t used_bytes_ = 0;
  uint64_t cached_bytes_ = 0;
  uint64_t used_high_ = 0;
  uint64_t reserved_high_ = 0;
  uint64_t kept_bytes_ = kDefaultKeptBytes;
  std::map<uint64_t, std::vector<std::byte*>> cache_;  // By block size.
};

class CpuMemory final : public hal::Memory {
 public:
  CpuMemory(std::shared_ptr<Heap> heap, std::byte* address, uint64_t bytes, uint64_t block_bytes)
      : heap_(std::move(heap)), address_(address), bytes_(bytes), block_bytes_(block_bytes) {}
  ~CpuMemory() override { heap_->Release({address_, block_bytes_}); }

  [[nodiscard]] std::byte* address() const override { return address_; }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  const std::shared_ptr<Heap> heap_;
  std::byte* const address_;
  const uint64_t bytes_;
  const uint64_t block_bytes_;
};

}  // namespace millrace::cpu
