#include "runtime/graphs.h"

#include <algorithm>

namespace millrace {

uint32_t GraphPlan::NumberOf(const MemoryRef& entry, uint32_t handle, bool is_own) {
  const auto [found, is_new] = numbers_.try_emplace(entry.get(), static_cast<uint32_t>(fixed.size()));
  if (is_new) fixed.push_back({entry, handle, is_own});
  return found->second;
}

uint32_t GraphPlan::SlotOf(uint32_t device, uint32_t entry) {
  const auto is_it = [&](const Slot& slot) { return slot.device == device && slot.entry == entry; };
  const auto found = std::find_if(slots.begin(), slots.end(), is_it);
  const auto number = static_cast<uint32_t>(found - slots.begin());
  if (found == slots.end()) slots.push_back({.device = device, .entry = entry});
  return number;
}

bool GraphPlan::IsUnused(uint32_t memory) const {
  const auto found = uses_.find(memory);
  return found == uses_.end() || !(found->second.is_input || found->second.is_overwritten);
}

void GraphPlan::AddAccesses(const std::vector<uint32_t>& reads, const std::vector<Write>& writes) {
  for (const uint32_t memory : reads) {
    Use& use = uses_[memory];
    if (use.is_overwritten || IsOverwrittenInBody(memory)) continue;
    if (!std::exchange(use.is_input, true)) inputs.push_back(memory);
  }
  for (const auto& [memory, is_whole] : writes) {
    Use& use = uses_[memory];
    if (!std::exchange(use.is_output, true)) outputs.push_back(memory);
    if (!is_whole || use.is_input) continue;
    if (!overwritten_in_bodies_.empty()) {
      overwritten_in_bodies_.back().insert(memory);
    } else if (!std::exchange(use.is_overwritten, true)) {
      overwritten.push_back(memory);
    }
  }
}

bool GraphPlan::IsOverwrittenInBody(uint32_t memory) const {
  return std::ranges::any_of(overwritten_in_bodies_, [&](const auto& body) { return body.contains(memory); });
}

hal::GraphNode& GraphPlan::NodeAt(uint32_t node, const Place& body) {
  if (body.empty()) return nodes[node];
  hal::GraphNode* found = &nodes[body[0]];
  for (size_t n = 1; n < body.size(); n += 2) {
    found = &std::get<hal::GraphCondition>(found->work).bodies[body[n]][body[n + 1]];
  }
  return *found;
}

void BuiltGraph::Set(std::unique_ptr<hal::Graph> graph) {
  std::lock_guard lock(mutex_);
  if (!is_over_) graph_ = std::move(graph);
}

hal::Graph* BuiltGraph::Get() {
  std::lock_guard lock(mutex_);
  return graph_.get();
}

void BuiltGraph::End() {
  // The second caller returns when the graph is destroyed.
  std::lock_guard lock(mutex_);
  is_over_ = true;
  graph_.reset();
}

void PeerGraphs::Add(const std::shared_ptr<BuiltGraph>& graph) {
  std::lock_guard lock(mutex_);
  if (graphs_.size() >= prune_at_) {
    std::erase_if(graphs_, [](const auto& each) { return each.expired(); });
    prune_at_ = 2 * graphs_.size() + 64;
  }
  graphs_.push_back(graph);
}

void PeerGraphs::EndAll() {
  std::vector<std::weak_ptr<BuiltGraph>> graphs;
  {
    std::lock_guard lock(mutex_);
    graphs.swap(graphs_);
  }
  for (const auto& each : graphs) {
    if (const std::shared_ptr<BuiltGraph> graph = each.lock()) graph->End();
  }
}

bool GraphEntry::Read() {
  if (!definition && !is_malformed) {
    definition = GraphDefinition::Read(bytes);
    is_malformed = !definition;
    std::vector<std::byte>().swap(bytes);
  }
  return !is_malformed;
}

void GraphEntry::NoteWaiting(StreamState& stream, Ticket ticket) {
  std::erase_if(waiting, [&](const Waiting& each) { return each.stream == &stream; });
  waiting.push_back({&stream, ticket});
}

bool GraphEntry::TakeRefusal(const StreamState& stream, Ticket ticket) {
  bool is_refused = false;
  std::erase_if(refused, [&](const Waiting& each) {
    is_refused |= each.stream == &stream && each.ticket == ticket;
    return each.stream == &stream;
  });
  return is_refused;
}

std::vector<GraphEntry::Waiting> GraphEntry::EndBuild(Status status) {
  std::vector<Waiting> woken = std::exchange(waiting, {});
  if (status.ok()) {
    build = Build::kDone;
    // The backend has them.
    plan->nodes = {};
    plan->kernels = {};
    definition->nodes = {};
  } else {
    build = Build::kNone;
    refused = woken;
    refusal = status;
  }
  return woken;
}

void GraphEntry::NoteLaunch(StreamState& stream, Ticket ticket) {
  for (auto& [launching, last] : launches) {
    if (launching != &stream) continue;
    last = ticket;
    return;
  }
  launches.emplace_back(&stream, ticket);
}

}  // namespace millrace
