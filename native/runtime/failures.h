// What went wrong on one stream: a list of ticket intervals. Neighbours with the same cause are one interval, so a
// flooded stream that fails a million times over one poisoned array costs one entry.
//
// The timeline slot's `failures` word is a version: it moves whenever an interval is added or grows, before the ticket
// counts as completed. An owner that sees it move asks for the intervals from the last one it knows.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "hal/hal.h"

namespace millrace {

struct Failure {
  uint32_t id = 0;
  hal::Ticket first = 0;
  hal::Ticket last = 0;
  Status status;
  uint32_t cause = 0;  // kUpstream: the id of the failure that came first.
  /// kDeviceLost: the channel of the device that is gone, which is another one; 0 where that is not known.
  uint32_t lost_device = 0;
  uint64_t requested_bytes = 0;
  uint64_t free_bytes = 0;
  /// kLaunchFailed: what the status's note names and the launch asked for too much of, and the most there can be.
  uint64_t requested = 0;
  uint64_t limit = 0;
  uint32_t kernel = 0;
  bool has_fault = false;
  protocol::FaultSlot fault{};
};

class FailureLog {
 public:
  /// Adds a failure of one ticket, or lets the last interval grow when it is its neighbour of the same kind. Returns
  /// the id of the interval that has it now.
  uint32_t Add(const Failure& failure, protocol::TimelineSlot& slot) {
    std::lock_guard lock(mutex_);
    if (!intervals_.empty() && CanGrow(intervals_.back(), failure)) {
      intervals_.back().last = failure.last;
    } else {
      intervals_.push_back(failure);
    }
    std::atomic_ref(slot.failures).fetch_add(1, std::memory_order_release);
    return intervals_.back().id;
  }

  /// The slot has a new stream, whose failures are numbered from 0 again.
  void Restart() {
    std::lock_guard lock(mutex_);
    intervals_.clear();
    dropped_ = 0;
  }

  /// Intervals by their number in the stream, from `from` on; earlier ones are forgotten. Thread: owner.
  [[nodiscard]] std::vector<Failure> From(uint32_t from) {
    std::lock_guard lock(mutex_);
    const size_t known = from > dropped_ ? from - dropped_ : 0;
    if (known >= intervals_.size()) return {};
    intervals_.erase(intervals_.begin(), intervals_.begin() + static_cast<ptrdiff_t>(known));
    dropped_ += static_cast<uint32_t>(known);
    return intervals_;
  }

 private:
  static bool CanGrow(const Failure& last, const Failure& next) {
    return last.last + 1 == next.first && last.status.code() == next.status.code() && last.cause == next.cause &&
           last.kernel == next.kernel && last.lost_device == next.lost_device && last.requested == next.requested &&
           last.limit == next.limit && !last.has_fault && !next.has_fault &&
           next.status.code() != StatusCode::kOutOfMemory;
  }

  std::mutex mutex_;
  std::vector<Failure> intervals_;
  uint32_t dropped_ = 0;
};

}  // namespace millrace
