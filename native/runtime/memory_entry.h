// One allocation: its memory, and the failure that poisoned its contents.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hal/hal.h"

namespace millrace {

class StreamState;

/// Whether contents are poisoned, and by which failure. A fault may be reported after later records have overwritten
/// the contents. So contents have a version, and a report applies only to the version that its launch wrote. Thread:
/// any; copies of other devices overwrite too.
class Poison {
 public:
  /// The id of the failure that poisoned the contents, or 0.
  [[nodiscard]] uint32_t by() const { return static_cast<uint32_t>(state_.load(std::memory_order_acquire)); }
  [[nodiscard]] uint32_t version() const { return static_cast<uint32_t>(state_.load(std::memory_order_acquire) >> 32); }
  /// Clears the poison and starts a new version, because a record overwrites all contents. Call it before the backend
  /// gets the work, because the work may complete, and other threads may look, before that call returns. If the work is
  /// then refused, set its failure in the new version.
  void Overwrite() {
    uint64_t seen = state_.load(std::memory_order_relaxed);
    while (!state_.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32)) {
    }
  }
  /// Poisons the contents with this failure.
  void Set(uint32_t failure) { SetIf(version(), failure); }
  /// As Set, unless the contents have been overwritten since `version`.
  void SetIf(uint32_t version, uint32_t failure) {
    uint64_t seen = state_.load(std::memory_order_acquire);
    while (seen >> 32 == version && !state_.compare_exchange_weak(seen, uint64_t{version} << 32 | failure)) {
    }
  }

 private:
  std::atomic<uint64_t> state_{0};  // The version in the high half, the failure in the low half.
};

struct MemoryEntry {
  /// How many handles name it; the last FREE gives it back. Thread: its channel.
  uint32_t handles = 1;
  /// The FREE records of other handles: those threads' uses come before them. Thread: its channel.
  std::vector<std::pair<StreamState*, hal::Ticket>> freed_by;
  std::unique_ptr<hal::Memory> memory;  // Null when the allocation failed. Thread: its channel.
  // Other channels read these; they do not change once the handle is bound.
  std::byte* address = nullptr;  // Null when the allocation failed.
  uint64_t bytes = 0;            // The requested size.
  protocol::AllocKind kind = protocol::AllocKind::kPool;
  Poison poison;
};
using MemoryRef = std::shared_ptr<MemoryEntry>;

}  // namespace millrace
