// Records that may still report a fault: checked launches, and copies of host memory whose owner may end. A kernel that
// uses an index outside an array, or a copy that finds its memory gone, fills its slot before its ticket counts as
// completed. The thread that notices the report turns it into a failure and poisons the memory that the record writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hal/hal.h"
#include "runtime/graph_faults.h"
#include "runtime/memory_entry.h"

namespace millrace {

/// The fault slots of one device. The first ones are made when it opens, because page-locking may wait for a running
/// kernel, and that kernel may wait for a record after the one that needs the slot. Thread: channel, after Reserve.
class FaultSlots {
 public:
  /// Thread: control, or channel when a flood of streams needs more.
  Status Reserve(hal::Device& device);
  /// Null if memory for slots cannot be allocated.
  [[nodiscard]] protocol::FaultSlot* Take(hal::Device& device);
  void GiveBack(protocol::FaultSlot* slot) { free_.push_back(slot); }
  void Clear();

 private:
  /// Enough for 32 streams with a full window of checked launches: 1 MiB.
  static constexpr uint32_t kChunk = 32 * protocol::kStreamWindow;
  std::vector<std::unique_ptr<hal::Memory>> chunks_;
  std::vector<protocol::FaultSlot*> free_;
};

/// The records of one stream that have a slot and are not known to be complete, in order.
class FaultWatch {
 public:
  /// Memory that a record writes, with the version of its contents.
  struct Output {
    std::shared_ptr<MemoryEntry> entry;
    uint32_t version = 0;
  };
  struct Watched {
    hal::Ticket ticket = 0;
    uint32_t kernel = 0;  // 0: a copy.
    bool is_reported = false;
    protocol::FaultSlot* slot = nullptr;
    std::vector<Output> outputs;
  };

  /// Thread: channel.
  void Add(hal::Ticket ticket, uint32_t kernel, protocol::FaultSlot* slot, std::span<MemoryRef* const> outputs);
  /// Thread: channel. Drops records up to `completed` whose reports, if any, were collected, and frees their slots.
  void Retire(hal::Ticket completed, FaultSlots& slots);
  /// Drops all records, because the device closes and frees its slots.
  void Clear();

  /// Adds a graph whose launches on this stream may report a fault. Thread: channel.
  void AddGraph(const std::shared_ptr<GraphFaults>& graph);
  /// Those graphs, as far as they are not freed. Thread: any.
  [[nodiscard]] std::vector<std::shared_ptr<GraphFaults>> Graphs();

  /// Calls `report(watched)` once for every record that faulted. Thread: any.
  template <typename Report>
  void Collect(Report report) {
    std::lock_guard lock(mutex_);
    for (Watched& watched : watched_) {
      if (watched.is_reported || !HasFaulted(watched)) continue;
      watched.is_reported = true;
      report(watched);
    }
  }

 private:
  static bool HasFaulted(const Watched& watched) {
    return std::atomic_ref(watched.slot->state).load(std::memory_order_acquire) == hal::kFaultWritten;
  }

  std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<Watched> watched_;
  std::vector<std::weak_ptr<GraphFaults>> graphs_;
};

}  // namespace millrace
