#include "runtime/fault_slots.h"

#include <cstring>

namespace millrace {

Status FaultSlots::Reserve(hal::Device& device) {
  auto memory = device.AllocateFaultSlots(kChunk);
  if (!memory.ok()) return memory.status();
  auto* slots = reinterpret_cast<protocol::FaultSlot*>(memory.value()->address());
  for (uint32_t n = kChunk; n > 0; --n) free_.push_back(&slots[n - 1]);
  chunks_.push_back(std::move(memory).value());
  return {};
}

protocol::FaultSlot* FaultSlots::Take(hal::Device& device) {
  if (free_.empty() && !Reserve(device).ok()) return nullptr;
  protocol::FaultSlot* slot = free_.back();
  free_.pop_back();
  return slot;
}

void FaultSlots::Clear() {
  free_.clear();
  chunks_.clear();
}

void FaultWatch::Add(hal::Ticket ticket, uint32_t kernel, protocol::FaultSlot* slot,
                     std::span<MemoryRef* const> outputs) {
  std::lock_guard lock(mutex_);
  Watched& watched = watched_.emplace_back(Watched{.ticket = ticket, .kernel = kernel, .slot = slot});
  watched.outputs.reserve(outputs.size());
  for (const MemoryRef* output : outputs) watched.outputs.push_back({*output, (*output)->poison.version()});
}

void FaultWatch::Retire(hal::Ticket completed, FaultSlots& slots) {
  std::lock_guard lock(mutex_);
  while (!watched_.empty() && watched_.front().ticket <= completed) {
    Watched& oldest = watched_.front();
    if (HasFaulted(oldest)) {
      if (!oldest.is_reported) return;
      std::memset(static_cast<void*>(oldest.slot), 0, sizeof(*oldest.slot));
    }
    slots.GiveBack(oldest.slot);
    watched_.pop_front();
  }
}

void FaultWatch::Clear() {
  std::lock_guard lock(mutex_);
  watched_.clear();
  graphs_.clear();
}

void FaultWatch::AddGraph(const std::shared_ptr<GraphFaults>& graph) {
  std::lock_guard lock(mutex_);
  std::erase_if(graphs_, [](const auto& each) { return each.expired(); });
  graphs_.push_back(graph);
}

std::vector<std::shared_ptr<GraphFaults>> FaultWatch::Graphs() {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<GraphFaults>> graphs;
  for (const auto& each : graphs_) {
    if (auto graph = each.lock()) graphs.push_back(std::move(graph));
  }
  return graphs;
}

}  // namespace millrace
