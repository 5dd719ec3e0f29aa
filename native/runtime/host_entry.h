// Registered host memory: its address, whether it may still be accessed, and which parts of it a failure poisoned.
//
// Only staging memory is poisoned. JavaScript writes to other host memory without the runtime's knowledge, so copies
// would be refused although JavaScript has overwritten the poisoned bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "hal/hal.h"

namespace millrace {

/// Poisoned byte ranges: the operations that should have written them failed. Thread: any.
class PoisonedRanges {
 public:
  /// The first of the failures that poisoned any of these bytes, or 0.
  [[nodiscard]] uint32_t by(uint64_t start, uint64_t bytes);
  /// Poisons these bytes.
  void Set(uint64_t start, uint64_t bytes, uint32_t failure);
  /// Clears the poison of these bytes, which a record overwrites.
  void Overwrite(uint64_t start, uint64_t bytes);

 private:
  struct Range {
    uint64_t end = 0;
    uint32_t failure = 0;
  };
  using Ranges = std::map<uint64_t, Range>;
  Ranges::iterator FirstBehind(uint64_t start);
  void Cut(uint64_t start, uint64_t end);

  std::atomic<bool> is_clean_{true};  // Avoids the lock while nothing has failed.
  std::mutex mutex_;
  Ranges ranges_;  // Sorted by start, without overlaps. Guarded by mutex_.
};

struct HostState {
  hal::HostLease lease;
  PoisonedRanges poisoned;
};

struct HostEntry {
  std::span<std::byte> bytes;
  bool is_page_locked = false;
  std::shared_ptr<HostState> state;

  /// A lease that keeps the state alive.
  [[nodiscard]] std::shared_ptr<const hal::HostLease> lease() const { return {state, &state->lease}; }
};

/// A part of staging memory. Without a state it is empty.
struct HostRange {
  std::shared_ptr<HostState> state;
  uint64_t start = 0;
  uint64_t bytes = 0;

  [[nodiscard]] uint32_t poisoned_by() const { return state == nullptr ? 0 : state->poisoned.by(start, bytes); }
  void Poison(uint32_t failure) const {
    if (state != nullptr) state->poisoned.Set(start, bytes, failure);
  }
  void Overwrite() const {
    if (state != nullptr) state->poisoned.Overwrite(start, bytes);
  }
};

}  // namespace millrace
