// The untimed events of one stream's unfinished tickets.
//
// Every record of a stream is followed by an event, so that any ticket can be waited for or asked about, also behind
// slower work. Events are pooled: an event goes back to the pool as soon as its ticket is known to be complete. Waits
// that were queued on it earlier keep the point they captured, so recording it again for a later ticket disturbs
// nothing.
//
// Lock: the table is read by other channels (a wait) and by the watcher (a question), so its owner guards it with one
// mutex, and holds that across the driver's call which uses an event found here. Otherwise the event could be recorded
// again between the two.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/driver.h"
#include "protocol/protocol.gen.h"

namespace millrace::cuda {

class EventTable {
 public:
  /// An event for the next ticket. Events of tickets up to `completed` are taken back first when none is free.
  /// CUDA_SUCCESS and an event, or the driver's refusal to make another one.
  CUresult Acquire(uint64_t completed, CUevent* event) {
    if (free_.empty()) Recycle(completed);
    if (free_.empty()) return Cuda().cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    *event = free_.back();  // The one used last: its memory is warm.
    free_.pop_back();
    return CUDA_SUCCESS;
  }

  /// Gives back an event whose record did not come about.
  void Return(CUevent event) { free_.push_back(event); }

  [[nodiscard]] bool HasRoom() const { return last_ - recycled_ < kCapacity; }

  /// `event` was recorded behind the work of `ticket`, the one after the last.
  void Add(uint64_t ticket, CUevent event) {
    events_[ticket % kCapacity] = event;
    last_ = ticket;
  }

  /// The event of a ticket, or null when that ticket is known to be complete.
  [[nodiscard]] CUevent Find(uint64_t ticket) const {
    return ticket <= recycled_ ? nullptr : events_[ticket % kCapacity];
  }

  /// Takes back the events of all tickets up to `completed`.
  void Recycle(uint64_t completed) {
    for (; recycled_ < completed && recycled_ < last_; ++recycled_) {
      free_.push_back(events_[(recycled_ + 1) % kCapacity]);
    }
  }

  /// Tickets start behind `first - 1`: a timeline slot is used by one stream after another.
  void StartAt(uint64_t first) { last_ = recycled_ = first - 1; }

  [[nodiscard]] bool is_started() const { return last_ != 0; }
  [[nodiscard]] uint64_t last() const { return last_; }

  /// Ends every event. The stream must be idle or gone.
  void Destroy() {
    Recycle(last_);
    for (const CUevent event : free_) Cuda().cuEventDestroy(event);
    free_.clear();
  }

 private:
  /// The runtime parks a stream at kStreamWindow unfinished records; the rest is slack for records that close failures.
  static constexpr uint64_t kCapacity = 2 * protocol::kStreamWindow;

  std::array<CUevent, kCapacity> events_ = {};
  std::vector<CUevent> free_;
  uint64_t last_ = 0;      // The newest ticket with an event.
  uint64_t recycled_ = 0;  // Tickets up to here have none any more.
};

}  // namespace millrace::cuda
