// Memory of a CPU device: ordinary host memory, handed out against a budget.
//
// A fresh page costs its fault when it is first touched, about 0.25 ms for each MiB, which is more than many kernels
// take. So freed blocks are kept, by size class and up to a cap, and the lanes of a pipeline that allocate and free the
// same sizes soon run on warm pages. Stream order needs no care here: a free is run by its stream, after what came
// before it, and only then is the block anyone's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/hal.h"

namespace millrace::cpu {

/// What a device keeps of freed blocks until it is told otherwise. A GPU's pool begins at 0, which means until the next
/// synchronization and not until the next free; a CPU device has no such moment, and at 0 would fault in every page of
/// every array anew.
inline constexpr uint64_t kDefaultKeptBytes = 256ull << 20;

/// Thread: any.
class Heap : public std::enable_shared_from_this<Heap> {
 public:
  explicit Heap(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Memory with undefined contents, aligned to 256. Never waits; zero bytes have an address of their own.
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> Allocate(uint64_t bytes);
  [[nodiscard]] uint64_t FreeBytes() const;

  /// `reserved` is what arrays use and what is kept for the next ones. It never exceeds `total`, the budget.
  [[nodiscard]] hal::PoolStats Use() const;
  void ResetHighWater();
  /// Freed blocks are kept up to so many bytes, from now on; what is more goes back to the system at once.
  void Keep(uint64_t bytes);
  [[nodiscard]] uint64_t kept_bytes() const;
  /// Gives freed blocks back to the system while at least `reserved_bytes` stay reserved, as cuMemPoolTrimTo does.
  void Trim(uint64_t reserved_bytes);

 private:
  friend class CpuMemory;
  struct Block {
    std::byte* address;
    uint64_t bytes;
  };

  static void Unmap(const std::vector<Block>& blocks);
  [[nodiscard]] std::byte* Take(uint64_t block_bytes);
  void Release(Block block);
  /// Moves cached blocks, the largest first, to `dropped` until at most `kept_bytes` stay. `mutex_` is held.
  void Evict(uint64_t kept_bytes, std::vector<Block>& dropped);
  /// `mutex_` is held.
  void NoteHighWater();

  const uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  uint64_t used_bytes_ = 0;
  uint64_t cached_bytes_ = 0;
  uint64_t used_high_ = 0;
  uint64_t reserved_high_ = 0;
  uint64_t kept_bytes_ = kDefaultKeptBytes;
  std::map<uint64_t, std::vector<std::byte*>> cache_;  // By size of block.
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
