// Registered host memory, as channels know it: where it is, whether it may still be touched, and which parts of it a
// failure poisoned.
//
// Only staging memory is poisoned: JavaScript writes to all other host memory unseen, and would be refused what it
// wrote.
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

/// Byte ranges that hold nothing, because what would have written them did not. Thread: any.
class PoisonedRanges {
 public:
  /// The failure that came first of those that poisoned any of these bytes, or 0.
  [[nodiscard]] uint32_t by(uint64_t start, uint64_t bytes);
  /// What would have written these bytes did not.
  void Set(uint64_t start, uint64_t bytes, uint32_t failure);
  /// They are written anew.
  void Overwrite(uint64_t start, uint64_t bytes);

 private:
  struct Range {
    uint64_t end = 0;
    uint32_t failure = 0;
  };
  using Ranges = std::map<uint64_t, Range>;
  Ranges::iterator FirstBehind(uint64_t start);
  void Cut(uint64_t start, uint64_t end);

  std::atomic<bool> is_clean_{true};  // So that looking costs nothing while nothing failed.
  std::mutex mutex_;
  Ranges ranges_;  // By their start; they do not overlap. Guarded by mutex_.
};

struct HostState {
  hal::HostLease lease;
  PoisonedRanges poisoned;
};

struct HostEntry {
  std::span<std::byte> bytes;
  bool is_page_locked = false;
  std::shared_ptr<HostState> state;

  /// Keeps the state.
  [[nodiscard]] std::shared_ptr<const hal::HostLease> lease() const { return {state, &state->lease}; }
};

/// A part of staging memory; of none, when there is no state.
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
