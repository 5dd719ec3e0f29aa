// The untimed events of a stream's unfinished tickets.
//
// The stream records an event after every operation, so that every ticket can be waited for or queried, even while
// slower work follows. Events are pooled: once its ticket is known to be complete, an event returns to the pool. Waits
// that were queued on it earlier refer to the record at that time, so a new record does not affect them.
//
// Lock: other channels read the table, for a wait, so its owner guards it with a mutex, and holds the mutex across the
// driver call that uses an event found here. Otherwise the event might be recorded again in between.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/driver.h"
#include "protocol/protocol.gen.h"

namespace millrace::cuda {

class EventTable {
 public:
  /// An event for the next ticket. If none is free, first recycles the events of tickets up to `completed`. Returns
  /// CUDA_SUCCESS and an event, or the driver's error from creating one.
  CUresult Acquire(uint64_t completed, CUevent* event) {
    if (free_.empty()) Recycle(completed);
    if (free_.empty()) return Cuda().cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    *event = free_.back();  // The last used one: its memory is still cached.
    free_.pop_back();
    return CUDA_SUCCESS;
  }

  /// Returns an event whose record failed.
  void Return(CUevent event) { free_.push_back(event); }

  [[nodiscard]] bool HasRoom() const { return last_ - recycled_ < kCapacity; }

  /// `event` was recorded after the work of `ticket`, which follows the last ticket.
  void Add(uint64_t ticket, CUevent event) {
    events_[ticket % kCapacity] = event;
    last_ = ticket;
  }

  /// The event of a ticket; null when that ticket is known to be complete.
  [[nodiscard]] CUevent Find(uint64_t ticket) const {
    return ticket <= recycled_ ? nullptr : events_[ticket % kCapacity];
  }

  /// Recycles the events of all tickets up to `completed`.
  void Recycle(uint64_t completed) {
    for (; recycled_ < completed && recycled_ < last_; ++recycled_) {
      free_.push_back(events_[(recycled_ + 1) % kCapacity]);
    }
  }

  /// The next ticket will be `first`: several streams use a timeline slot one after the other.
  void StartAt(uint64_t first) { last_ = recycled_ = first - 1; }

  [[nodiscard]] bool is_started() const { return last_ != 0; }
  [[nodiscard]] uint64_t last() const { return last_; }

  /// Destroys every event. The stream must be idle or destroyed.
  void Destroy() {
    Recycle(last_);
    for (const CUevent event : free_) Cuda().cuEventDestroy(event);
    free_.clear();
  }

 private:
  /// The runtime parks a stream at kStreamWindow unfinished records; the rest is room for records that finish failures.
  static constexpr uint64_t kCapacity = 2 * protocol::kStreamWindow;

  std::array<CUevent, kCapacity> events_ = {};
  std::vector<CUevent> free_;
  uint64_t last_ = 0;      // The newest ticket with an event.
  uint64_t recycled_ = 0;  // Tickets up to this one have no event any more.
};

}  // namespace millrace::cuda
