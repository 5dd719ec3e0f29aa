// One allocation, as channels know it: its memory, and which failure poisoned what is in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hal/hal.h"

namespace millrace {

/// Whether contents are poisoned, and by which failure. A fault is reported after its launch, perhaps after contents
/// that replaced those it poisoned; so contents have a version, and a late report counts only for the version it is
/// about. Thread: any; copies of other devices overwrite too.
class Poison {
 public:
  /// The id of the failure that poisoned the contents, or 0.
  [[nodiscard]] uint32_t by() const { return static_cast<uint32_t>(state_.load(std::memory_order_acquire)); }
  [[nodiscard]] uint32_t version() const { return static_cast<uint32_t>(state_.load(std::memory_order_acquire) >> 32); }
  /// All of it is written anew. Called before the backend is given the work: it may be over, and others may look,
  /// before that call returns. Work that is then refused sets its failure in the new version.
  void Overwrite() {
    uint64_t seen = state_.load(std::memory_order_relaxed);
    while (!state_.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32)) {
    }
  }
  /// What would have written it did not.
  void Set(uint32_t failure) { SetIf(version(), failure); }
  /// As Set, unless the contents have been overwritten since `version`.
  void SetIf(uint32_t version, uint32_t failure) {
    uint64_t seen = state_.load(std::memory_order_acquire);
    while (seen >> 32 == version && !state_.compare_exchange_weak(seen, uint64_t{version} << 32 | failure)) {
    }
  }

 private:
  std::atomic<uint64_t> state_{0};  // Version in the high half, failure in the low one.
};

struct MemoryEntry {
  std::unique_ptr<hal::Memory> memory;  // Null when the allocation failed. Thread: its channel.
  // What other channels read; neither changes once the handle is bound.
  std::byte* address = nullptr;  // Null when the allocation failed.
  uint64_t bytes = 0;            // As asked for.
  protocol::AllocKind kind = protocol::AllocKind::kPool;
  Poison poison;
};
using MemoryRef = std::shared_ptr<MemoryEntry>;

}  // namespace millrace
