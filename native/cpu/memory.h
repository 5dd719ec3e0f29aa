// Memory of a CPU device: address space of its own (address_space.h) within a budget.
//
// The first touch of a fresh page faults: about 0.25 ms per MiB, more than many kernels take. So freed blocks are
// cached by size class, up to a limit, and pipelines that allocate and free the same sizes soon reuse warm pages.
// A block comes to the cache when its stream runs the free, after everything before it. Only the stream itself can
// reuse it sooner (StreamCore::TakeFreed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cpu/address_space.h"
#include "cpu/small_blocks.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// Default limit of cached bytes. A GPU's pool starts with 0, which keeps memory until the next synchronization; a CPU
/// device has no such point, so with 0 every array would fault in all of its pages again.
inline constexpr uint64_t kDefaultKeptBytes = 256ull << 20;

/// The inaccessible bytes before and behind each array of a device with guarded memory.
inline constexpr uint64_t kArrayGuardBytes = 1 << 20;

/// Where an array lies.
struct ArrayPlace {
  uintptr_t address = 0;
  uint64_t bytes = 0;

  /// The end counts: it is a pointer into the array, too.
  [[nodiscard]] bool IsPointedTo(uint64_t word) const { return word - address <= bytes; }
};

/// A byte outside an array, relative to its start.
struct StrayByte {
  ArrayPlace array;
  int64_t byte = 0;
};

class CpuMemory;

/// Thread: any.
class Heap : public std::enable_shared_from_this<Heap> {
 public:
  explicit Heap(uint64_t budget_bytes);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Before the first allocation.
  void Limit(uint64_t budget_bytes) { budget_bytes_ = budget_bytes; }
  /// Allocates from now on between inaccessible pages, and caches nothing, so that accesses to freed memory fault as
  /// well. The rest of an array's first and last page has a pattern: see FindStrayWrite. Of very many arrays, the last
  /// ones are not guarded, since a process may have 65,530 mappings. Before the first allocation.
  void Guard();
  /// Uninitialised memory, aligned to 256 bytes, or to 16 bytes between guards. Never blocks; an allocation of zero
  /// bytes has a unique address.
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> Allocate(uint64_t bytes);
  /// The size of the block if an allocation of the same stream may have it before the free has run; else 0.
  [[nodiscard]] uint64_t ReusableBytes(const hal::Memory& freed) const;
  /// That of an allocation of so many bytes.
  [[nodiscard]] uint64_t ReusableBytes(uint64_t bytes) const;
  /// Makes of freed memory of the same reusable size an allocation of so many bytes.
  void Renew(hal::Memory& freed, uint64_t bytes);
  /// Whether the cache would take the block at once, without a call of the system. A hint.
  [[nodiscard]] bool WouldKeep(uint64_t bytes) const;
  [[nodiscard]] uint64_t FreeBytes() const;

  /// `reserved` is the bytes in use and in the cache. It never exceeds `total`, the budget.
  [[nodiscard]] hal::PoolStats Use() const;
  void ResetHighWater();
  /// Sets the limit of cached bytes; excess blocks go back to the system at once.
  void Keep(uint64_t bytes);
  [[nodiscard]] uint64_t kept_bytes() const;
  /// Returns cached blocks to the system as long as at least `reserved_bytes` stay reserved, like cuMemPoolTrimTo.
  void Trim(uint64_t reserved_bytes);

  // Of all heaps of the process. `words` are the parameters of a launch.

  /// The array that an access of this address was meant for: the nearest one that a word points to, or whose guard it
  /// is, else the nearest one. Nothing if the address is not in a heap's address space.
  [[nodiscard]] static std::optional<StrayByte> FindStrayAccess(uintptr_t address, std::span<const uint64_t> words);
  /// A changed byte of the pattern beside a guarded array that a word points to. Restores the pattern.
  [[nodiscard]] static std::optional<StrayByte> FindStrayWrite(std::span<const uint64_t> words);

 private:
  friend class CpuMemory;
  struct Block {
    std::byte* address = nullptr;
    uint64_t bytes = 0;
    Slab* slab = nullptr;  // Of a small block.
    bool is_guarded = false;
  };

  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> Allocate(uint64_t bytes, bool is_guarded);
  /// Sets the address of the block; null if the system refuses it.
  void Map(Block& block);
  void Unmap(const std::vector<Block>& blocks);
  void Release(const CpuMemory& memory);
  /// Needs `mutex_`.
  [[nodiscard]] std::unique_ptr<hal::Memory> Own(const Block& block, uint64_t bytes);
  /// Sets the address of the block if one is free without a call of the system. Needs `mutex_`.
  void Take(Block& block);
  /// Moves cached blocks, largest first, to `dropped` until at most `kept_bytes` remain. Needs `mutex_`.
  void Evict(uint64_t kept_bytes, std::vector<Block>& dropped);
  /// Needs `mutex_`.
  void NoteHighWater();

  uint64_t budget_bytes_;    // Constant since the first allocation.
  bool is_guarded_ = false;  // Constant since the first allocation.
  AddressSpace space_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  uint64_t used_bytes_ = 0;
  uint64_t cached_bytes_ = 0;
  uint64_t used_high_ = 0;
  uint64_t reserved_high_ = 0;
  uint64_t kept_bytes_ = kDefaultKeptBytes;
  std::map<uint64_t, std::vector<std::byte*>> cache_;  // By block size.
  SmallBlocks small_;
  CpuMemory* arrays_ = nullptr;
  uint32_t guarded_arrays_ = 0;
};

class CpuMemory final : public hal::Memory {
 public:
  CpuMemory(std::shared_ptr<Heap> heap, const Heap::Block& block, std::byte* address, uint64_t bytes)
      : heap_(std::move(heap)), block_(block), address_(address), bytes_(bytes) {}
  ~CpuMemory() override { heap_->Release(*this); }

  [[nodiscard]] std::byte* address() const override { return address_; }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  friend class Heap;
  [[nodiscard]] ArrayPlace place() const { return {reinterpret_cast<uintptr_t>(address_), bytes_}; }

  const std::shared_ptr<Heap> heap_;
  const Heap::Block block_;
  std::byte* const address_;
  uint64_t bytes_;  // Written with the heap's mutex, by the thread that owns the object.
  // The heap's list. Guarded by its mutex.
  CpuMemory* before_ = nullptr;
  CpuMemory* after_ = nullptr;
};

}  // namespace millrace::cpu
