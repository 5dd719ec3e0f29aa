// Registered host memory: its address, whether it may still be accessed, and which parts of it a failure poisoned.
//
// Staging memory stays poisoned for copies through it until one overwrites it. JavaScript writes to pinned arrays
// without the runtime's knowledge, so their poison ends when the failure is reported to code: records that were
// submitted before that, issued or not, still fail. Other host memory is private to an owner's copies and is never
// poisoned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hal/hal.h"
#include "runtime/failure_id.h"

namespace millrace {

/// Counts how often failures were reported to code that poisoned pinned arrays, in the whole process. Thread: any.
class HostPoison {
 public:
  /// It was not reported.
  static constexpr uint32_t kUnreported = UINT32_MAX;
  [[nodiscard]] static uint32_t Reported() { return reported_.load(std::memory_order_relaxed); }
  /// The count from this time on.
  [[nodiscard]] static uint32_t Report() { return reported_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  static inline std::atomic<uint32_t> reported_{0};
};

/// Poisoned byte ranges: the operations that should have written them failed. Thread: any.
class PoisonedRanges {
 public:
  /// The first of the failures that poisoned any of these bytes for a record of this count of HostPoison, or 0. Lasting
  /// poison counts only `with_lasting`.
  [[nodiscard]] FailureId by(uint64_t start, uint64_t bytes, bool with_lasting, uint32_t reported);
  /// Poisons these bytes for records of a lower count.
  void Set(uint64_t start, uint64_t bytes, FailureId failure, bool is_lasting, uint32_t reported_at);
  /// This failure of these bytes was reported to code.
  void Report(uint64_t start, uint64_t bytes, FailureId failure, uint32_t reported_at);
  /// Clears the poison of these bytes, which a record overwrites.
  void Overwrite(uint64_t start, uint64_t bytes);

 private:
  struct Range {
    uint64_t end = 0;
    FailureId failure = 0;
    bool is_lasting = false;
    uint32_t reported_at = HostPoison::kUnreported;
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

/// A part of registered memory. Without a state it is empty.
struct HostRange {
  std::shared_ptr<HostState> state;
  uint64_t start = 0;
  uint64_t bytes = 0;
  bool is_lasting = false;  // It is staging memory.
  /// Of a range that a failed record should have written: when its failure was reported.
  uint32_t reported_at = HostPoison::kUnreported;

  [[nodiscard]] uint64_t end() const { return start + bytes; }
  [[nodiscard]] bool Overlaps(const HostRange& other) const {
    return state == other.state && start < other.end() && other.start < end();
  }
  /// The parts of it that are not in the other range.
  [[nodiscard]] std::vector<HostRange> Without(const HostRange& other) const;

  /// For a record of this count.
  [[nodiscard]] FailureId poisoned_by(uint32_t reported) const {
    return state == nullptr ? 0 : state->poisoned.by(start, bytes, is_lasting, reported);
  }
  void Poison(FailureId failure) const {
    if (state != nullptr) state->poisoned.Set(start, bytes, failure, is_lasting, reported_at);
  }
  void Report(FailureId failure, uint32_t reported) const { state->poisoned.Report(start, bytes, failure, reported); }
  void Overwrite() const {
    if (state != nullptr) state->poisoned.Overwrite(start, bytes);
  }
};

}  // namespace millrace
