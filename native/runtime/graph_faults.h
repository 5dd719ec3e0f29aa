// The fault reports of one graph. Its checked kernels, and its copies of host memory whose owner may end, have one
// fault slot each, for all launches: so a report says which node it comes from, and not which launch. A report
// therefore fails every launch that was issued and is not known to have completed before it. No launch is issued while
// a slot holds a report; the channel clears the slots when the earlier launches have completed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hal/hal.h"
#include "runtime/memory_entry.h"

namespace millrace {

class StreamState;

/// Thread: any.
class GraphFaults {
 public:
  struct Node {
    protocol::FaultSlot* slot = nullptr;
    uint32_t node = 0;
    uint32_t kernel = 0;  // 0: a copy.
  };
  /// Memory that a launch writes, with the version of its contents.
  using Outputs = std::vector<std::pair<MemoryRef, uint32_t>>;
  struct Launch {
    StreamState* stream = nullptr;
    hal::Ticket ticket = 0;
    Outputs outputs;
  };

  explicit GraphFaults(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}

  /// Before the launch is given to the backend. Forgets earlier launches that completed without a report.
  void Watch(StreamState& stream, hal::Ticket ticket, Outputs outputs);
  /// Whether no kernel has begun a report since Clear.
  [[nodiscard]] bool IsClear();
  /// Calls `report(node, launch)` for every launch that a complete report fails: once, with the first node.
  template <typename Report>
  void Collect(Report report) {
    std::lock_guard lock(mutex_);
    if (launches_.empty()) return;
    for (const Node& node : nodes_) {
      if (State(node) != hal::kFaultWritten) continue;
      for (const Launch& launch : launches_) report(node, launch);
      launches_.clear();
      return;
    }
  }
  /// Poisons what this launch writes.
  void Poison(const StreamState& stream, hal::Ticket ticket, uint32_t failure);
  /// Empties the slots. All launches have completed, and their reports were collected.
  void Clear();
  /// As Clear, and returns the slots, which nothing reads any more.
  std::vector<protocol::FaultSlot*> End();

 private:
  static uint32_t State(const Node& node);
  bool AreSlotsClear() const;
  void EmptySlots();

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Node> nodes_;
  std::deque<Launch> launches_;  // Not known to have completed without a report, in order.
};

}  // namespace millrace
