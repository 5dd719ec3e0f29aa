// The ids of failures. They count the records of all devices in the order in which these are issued, so of several
// failures the one with the smallest id is the first.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

/// 0: none. Unique in the process, because memory of one device can be poisoned by a failure on another.
using FailureId = uint64_t;

/// The next id. A process that has a device for another one starts at a place of its own. Thread: any.
inline std::atomic<FailureId> next_failure_id{1};

/// The place of a record that is issued now, and the id of its failure. Thread: any.
inline FailureId NextFailureId() {
  return next_failure_id.fetch_add(1, std::memory_order_relaxed);
}

/// Makes `first` the first of both failures.
inline void TakeFirst(FailureId& first, FailureId other) {
  if (other != 0 && (first == 0 || other < first)) first = other;
}

}  // namespace millrace
