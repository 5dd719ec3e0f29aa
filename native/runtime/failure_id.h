// The ids of failures. They count the records of all devices in the order in which these are issued, so of several
// failures the one with the smallest id is the first.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

/// 0: none. Unique in the process, because memory of one device can be poisoned by a failure on another.
using FailureId = uint64_t;

/// The place of a record that is issued now, and the id of its failure. Thread: any.
inline FailureId NextFailureId() {
  static std::atomic<FailureId> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

/// Makes `first` the first of both failures.
inline void TakeFirst(FailureId& first, FailureId other) {
  if (other != 0 && (first == 0 || other < first)) first = other;
}

}  // namespace millrace
