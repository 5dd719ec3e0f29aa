// Checked launches whose fault report may still come. A kernel that leaves an array's bounds fills its slot before its
// ticket counts as completed; whoever notices turns the slot into a failure and spoils what the launch would have
// written.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/hal.h"
#include "runtime/memory_entry.h"

namespace millrace {

/// The fault slots of one device. The first ones are made when it opens: page-locking may wait for running kernels, and
/// a kernel may run until something is issued that stands behind this. Thread: channel, after Reserve.
class FaultSlots {
 public:
  /// Thread: control, or channel when a flood of streams needs more.
  Status Reserve(hal::Device& device);
  /// Null when no memory for slots could be had.
  [[nodiscard]] protocol::FaultSlot* Take(hal::Device& device);
  void GiveBack(protocol::FaultSlot* slot) { free_.push_back(slot); }
  void Clear();

 private:
  /// 32 streams with a full window of checked launches, 1 MiB.
  static constexpr uint32_t kChunk = 32 * protocol::kStreamWindow;
  std::vector<std::unique_ptr<hal::Memory>> chunks_;
  std::vector<protocol::FaultSlot*> free_;
};

/// The checked launches of one stream that are not known to be over, in order.
class FaultWatch {
 public:
  /// What a launch writes, in the version that it makes.
  struct Output {
    std::shared_ptr<MemoryEntry> entry;
    uint32_t version = 0;
  };
  struct Launch {
    hal::Ticket ticket = 0;
    uint32_t kernel = 0;
    bool is_reported = false;
    protocol::FaultSlot* slot = nullptr;
    std::vector<Output> outputs;
  };

  /// Thread: channel. Lets go of launches up to `completed` whose reports, if any, were collected.
  void Add(hal::Ticket ticket, uint32_t kernel, protocol::FaultSlot* slot,
           const std::vector<std::shared_ptr<MemoryEntry>*>& outputs);
  void Retire(hal::Ticket completed, FaultSlots& slots);
  /// The device closes: its slots go.
  void Clear();

  /// Calls `report(launch)` once for every launch that faulted. Thread: any.
  template <typename Report>
  void Collect(Report report) {
    std::lock_guard lock(mutex_);
    for (Launch& launch : launches_) {
      if (launch.is_reported || !HasFaulted(launch)) continue;
      launch.is_reported = true;
      report(launch);
    }
  }

 private:
  static constexpr uint32_t kWritten = 2;
  static bool HasFaulted(const Launch& launch) {
    return std::atomic_ref(launch.slot->state).load(std::memory_order_acquire) == kWritten;
  }

  std::mutex mutex_;
  std::deque<Launch> launches_;  // Guarded by mutex_.
};

}  // namespace millrace
