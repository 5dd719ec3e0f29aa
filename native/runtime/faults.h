// Checked launches of one stream whose fault report may still come. A kernel that leaves an array's bounds fills its
// slot before its ticket counts as completed; whoever notices turns the slot into a failure and spoils what the launch
// would have written.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/hal.h"
#include "runtime/memory_entry.h"

namespace millrace {

class FaultWatch {
 public:
  struct Launch {
    hal::Ticket ticket = 0;
    uint32_t kernel = 0;
    bool reported = false;
    std::vector<std::shared_ptr<MemoryEntry>> outputs;
  };

  /// A free slot for a launch, or null when no memory for slots could be had. Thread: channel.
  [[nodiscard]] protocol::FaultSlot* Begin(hal::Device& device, hal::Ticket ticket, hal::Ticket completed, uint32_t kernel,
                                           const std::vector<std::shared_ptr<MemoryEntry>*>& outputs);

  /// Calls `report(launch, slot)` once for every launch that faulted. Thread: any.
  template <typename Report>
  void Collect(Report report) {
    std::lock_guard lock(mutex_);
    if (memory_ == nullptr) return;
    for (uint32_t n = first_; n != next_; ++n) {
      Launch& launch = launches_[n % kSlots];
      protocol::FaultSlot& slot = Slot(n % kSlots);
      if (launch.reported || std::atomic_ref(slot.state).load(std::memory_order_acquire) != kWritten) continue;
      launch.reported = true;
      report(launch, slot);
    }
  }

 private:
  static constexpr uint32_t kWritten = 2;
  /// More than a stream may have in flight, so a slot is always free once the window let the launch through.
  static constexpr uint32_t kSlots = protocol::kStreamWindow * 2;

  protocol::FaultSlot& Slot(uint32_t index) { return reinterpret_cast<protocol::FaultSlot*>(memory_->address())[index]; }

  std::mutex mutex_;
  std::unique_ptr<hal::Memory> memory_;
  std::vector<Launch> launches_;
  uint32_t first_ = 0;  // Oldest launch that is not known to be completed; counts up and wraps.
  uint32_t next_ = 0;
};

}  // namespace millrace
