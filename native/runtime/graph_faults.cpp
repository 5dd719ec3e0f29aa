#include "runtime/graph_faults.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/streams.h"

namespace millrace {

uint32_t GraphFaults::State(const Node& node) {
  return std::atomic_ref(node.slot->state).load(std::memory_order_acquire);
}

bool GraphFaults::AreSlotsClear() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return State(node) == 0; });
}

void GraphFaults::Watch(StreamState& stream, hal::Ticket ticket, Outputs outputs) {
  std::lock_guard lock(mutex_);
  // The tickets first: a launch reports before its ticket completes.
  size_t completed = 0;
  while (completed < launches_.size() && launches_[completed].stream->Completed() >= launches_[completed].ticket) {
    ++completed;
  }
  if (completed > 0 && AreSlotsClear()) launches_.erase(launches_.begin(), launches_.begin() + completed);
  launches_.push_back({&stream, ticket, std::move(outputs)});
}

bool GraphFaults::IsClear() {
  std::lock_guard lock(mutex_);
  return AreSlotsClear();
}

void GraphFaults::Poison(const StreamState& stream, hal::Ticket ticket, uint32_t failure) {
  std::lock_guard lock(mutex_);
  for (const Launch& launch : launches_) {
    if (launch.stream != &stream || launch.ticket != ticket) continue;
    for (const auto& [entry, version] : launch.outputs) entry->poison.SetIf(version, failure);
  }
}

void GraphFaults::EmptySlots() {
  for (const Node& node : nodes_) std::memset(static_cast<void*>(node.slot), 0, sizeof(*node.slot));
}

void GraphFaults::Clear() {
  std::lock_guard lock(mutex_);
  EmptySlots();
  launches_.clear();
}

std::vector<protocol::FaultSlot*> GraphFaults::End() {
  std::lock_guard lock(mutex_);
  EmptySlots();
  std::vector<protocol::FaultSlot*> slots;
  for (const Node& node : nodes_) slots.push_back(node.slot);
  nodes_.clear();
  launches_.clear();
  return slots;
}

}  // namespace millrace
