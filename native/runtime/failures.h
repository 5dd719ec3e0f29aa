// The failures of one stream: a list of ticket intervals. Adjacent tickets with the same cause share one interval, so a
// million operations that fail because of one poisoned array need one entry.
//
// The timeline slot's `failures` word is a version: it changes whenever an interval is added or grows, before the
// ticket counts as completed. An owner that sees it change requests the intervals from the last one that it knows, some
// at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "hal/hal.h"
#include "runtime/failure_id.h"

namespace millrace {

struct Failure {
  FailureId id = 0;
  hal::Ticket first = 0;
  hal::Ticket last = 0;
  Status status;
  FailureId cause = 0;  // kUpstream: the id of the first failure.
  /// kDeviceLost: the channel of the other device that was lost; 0 if it is not known.
  uint32_t lost_device = 0;
  uint64_t requested_bytes = 0;
  uint64_t free_bytes = 0;
  /// kLaunchFailed: the requested amount of the resource that the status's note names, and its limit.
  uint64_t requested = 0;
  uint64_t limit = 0;
  uint32_t kernel = 0;
  /// Of a graph's launch: the index of the node that failed, if one did.
  uint32_t node = hal::kNoNode;
  bool has_fault = false;
  protocol::FaultSlot fault{};
};

class FailureLog {
 public:
  struct Part {
    std::vector<Failure> intervals;
    /// How many follow these.
    size_t rest = 0;
  };

  /// Adds a failure of one ticket. Extends the last interval if the ticket is adjacent to it and the cause is the same.
  /// Returns the id of the interval.
  FailureId Add(const Failure& failure, protocol::TimelineSlot& slot) {
    std::lock_guard lock(mutex_);
    if (!intervals_.empty() && CanGrow(intervals_.back(), failure)) {
      intervals_.back().last = failure.last;
    } else {
      intervals_.push_back(failure);
    }
    std::atomic_ref(slot.failures).fetch_add(1, std::memory_order_release);
    return intervals_.back().id;
  }

  /// Starts the numbering at 0 again, for a new stream in the slot.
  void Restart() {
    std::lock_guard lock(mutex_);
    intervals_.clear();
    dropped_ = 0;
  }

  /// At most `count` intervals with numbers from `from` on; drops the earlier ones. Thread: owner.
  [[nodiscard]] Part From(uint32_t from, uint32_t count) {
    std::lock_guard lock(mutex_);
    const size_t known = from > dropped_ ? from - dropped_ : 0;
    if (known >= intervals_.size()) return {};
    intervals_.erase(intervals_.begin(), intervals_.begin() + static_cast<ptrdiff_t>(known));
    dropped_ += static_cast<uint32_t>(known);
    const size_t read = std::min<size_t>(count, intervals_.size());
    return {{intervals_.begin(), intervals_.begin() + static_cast<ptrdiff_t>(read)}, intervals_.size() - read};
  }

 private:
  static bool CanGrow(const Failure& last, const Failure& next) {
    return last.last + 1 == next.first && last.status.code() == next.status.code() && last.cause == next.cause &&
           last.kernel == next.kernel && last.node == next.node && last.lost_device == next.lost_device &&
           last.requested == next.requested && last.limit == next.limit && !last.has_fault && !next.has_fault &&
           next.status.code() != StatusCode::kOutOfMemory && next.status.code() != StatusCode::kFunction;
  }

  std::mutex mutex_;
  std::deque<Failure> intervals_;
  uint32_t dropped_ = 0;
};

}  // namespace millrace
