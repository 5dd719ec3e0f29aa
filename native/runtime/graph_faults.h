// The fault reports of one graph. Its checked kernels, and its copies of host memory whose owner may end, need a fault
// slot each. Each launch has a set of such slots until it has completed, so a report tells its launch: launches that
// are queued together have different sets. A set is used again when its launch has completed and its report, if there
// is one, became a failure.
//
// Nodes in the bodies of conditions keep the parameters that they were built with. A graph with such nodes has one set,
// so one of its launches is with the backend at a time, and all its nodes have one fault word in place of the device's:
// its conditions read that word, and it is reset after each launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "hal/hal.h"

namespace millrace {

class StreamState;

/// Thread: any, unless stated otherwise.
class GraphFaults {
 public:
  /// A node that may report a fault.
  struct Node {
    uint32_t node = 0;
    uint32_t kernel = 0;  // 0: a copy.
  };
  /// A slot for each node, in the order of the nodes.
  using Slots = std::vector<protocol::FaultSlot*>;
  struct Launch {
    StreamState* stream = nullptr;
    hal::Ticket ticket = 0;
    uint32_t set = 0;
  };
  struct Report {
    Node node;
    protocol::FaultSlot fault{};
  };

  /// `word`: of a graph with nodes in bodies, the slot whose state is the fault word of all. Null without such nodes.
  explicit GraphFaults(std::vector<Node> nodes, protocol::FaultSlot* word = nullptr)
      : nodes_(std::move(nodes)), word_(word) {}

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  /// The fault word of all nodes, if some are in bodies. Null otherwise.
  [[nodiscard]] uint32_t* word() const { return word_ == nullptr ? nullptr : &word_->state; }
  /// Whether a node of a graph with that word has reported a fault.
  [[nodiscard]] bool HasWord() const;
  /// A set that no launch has; `preferred`, if it is one. Nothing if there is none. Thread: channel.
  [[nodiscard]] std::optional<uint32_t> FindFree(uint32_t preferred);
  /// Whether the graph may have another set.
  [[nodiscard]] bool MayGrow();
  /// Adds a set of empty slots, and returns its number. Thread: channel.
  uint32_t AddSet(Slots slots);
  /// Thread: channel.
  [[nodiscard]] const Slots& SlotsOf(uint32_t set) const { return sets_[set].slots; }

  /// Before the launch is given to the backend. From now on the set is the launch's. Thread: channel.
  void Watch(StreamState& stream, hal::Ticket ticket, uint32_t set);
  /// The stream and the ticket of the oldest launch that was not dropped, if there is one.
  [[nodiscard]] std::optional<std::pair<StreamState*, hal::Ticket>> Oldest();
  /// The report of this launch, of its first node that has one. Nothing if the launch was dropped.
  [[nodiscard]] std::optional<Report> ReportOf(const StreamState& stream, hal::Ticket ticket);
  /// How many of the oldest launches have completed.
  [[nodiscard]] size_t CountCompleted();
  /// Drops the oldest launches and empties their sets. Their reports were collected. Thread: channel.
  void Drop(size_t count);
  /// Empties the slots of all sets and returns them. All launches have completed, and their reports were collected.
  Slots End();

 private:
  struct Set {
    Slots slots;
    bool is_used = false;
  };

  static uint32_t State(protocol::FaultSlot& slot);
  static bool HasCompleted(const Launch& launch);

  const std::vector<Node> nodes_;
  protocol::FaultSlot* const word_;

  std::mutex mutex_;
  // Guarded by mutex_; only the channel changes sets_.
  std::deque<Set> sets_;
  std::deque<Launch> launches_;  // Not known to have completed, in order.
};

}  // namespace millrace
