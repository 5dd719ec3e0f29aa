// The fault slots of a launch of a graph: each launch has slots of its own, in which its nodes report failures.
#include <algorithm>

#include "runtime/device_access.h"
#include "runtime/fault_reports.h"
#include "runtime/issue/graph_launch.h"
#include "runtime/issue/stream_waits.h"

namespace millrace {
namespace {

void StopLoopsAt(const uint32_t* word, std::vector<hal::GraphNode>& nodes) {
  for (hal::GraphNode& node : nodes) {
    auto* const condition = std::get_if<hal::GraphCondition>(&node.work);
    if (condition == nullptr) continue;
    condition->stop = word;
    for (std::vector<hal::GraphNode>& body : condition->bodies) StopLoopsAt(word, body);
  }
}

}  // namespace

bool GraphLaunch::TakeFaultSlots() {
  std::vector<GraphFaults::Node> nodes;
  for (const GraphPlan::Checked& checked : plan_->checked) nodes.push_back({checked.node, checked.kernel});
  for (const auto& copy : plan_->reporting_copies) nodes.push_back({copy.node, 0});
  const bool has_bodies =
      std::ranges::any_of(plan_->checked, [](const auto& each) { return !each.body.empty(); }) ||
      std::ranges::any_of(plan_->reporting_copies, [](const auto& each) { return !each.body.empty(); });
  if (nodes.empty()) return true;
  const size_t count = nodes.size();
  std::optional<GraphFaults::Slots> slots = parts_.faults.TakeForGraph(has_bodies ? count + 1 : count);
  if (!slots) return false;
  protocol::FaultSlot* word = nullptr;
  if (has_bodies) {
    word = slots->back();
    slots->pop_back();
  }
  graph_.faults = std::make_shared<GraphFaults>(std::move(nodes), word);
  auto slot = slots->begin();
  for (const GraphPlan::Checked& checked : plan_->checked) {
    auto& kernel = std::get<hal::GraphKernel>(plan_->NodeAt(checked.node, checked.body).work);
    kernel.params[checked.param] = reinterpret_cast<uintptr_t>(*slot++);
    uint32_t* const own_word = graph_.faults->word();
    kernel.params[checked.param + 1] =
        reinterpret_cast<uintptr_t>(own_word != nullptr ? own_word : parts_.faults.word());
  }
  for (const auto& [node, body] : plan_->reporting_copies) {
    hal::HostLeases& host = std::get<hal::GraphCopy>(plan_->NodeAt(node, body).work).host;
    host.report = *slot++;
    host.fault_word = parts_.faults.word();
  }
  if (has_bodies) StopLoopsAt(graph_.faults->word(), plan_->nodes);
  plan_->fault_set = graph_.faults->AddSet(std::move(*slots));
  return true;
}

/// While the earlier launches have all the sets that a graph may have, the stream waits for the oldest of them. No
/// later record of the stream could begin before that one has completed.
GraphLaunch::Ended GraphLaunch::FindFaultSet() {
  if (graph_.faults == nullptr) return std::nullopt;
  GraphFaults& faults = *graph_.faults;
  const size_t count = faults.nodes().size();
  while (true) {
    FaultReports::RetireGraph(faults);
    if (const std::optional<uint32_t> free = faults.FindFree(graph_.plan->fault_set)) {
      fault_set_ = *free;
      return std::nullopt;
    }
    if (faults.MayGrow()) {
      if (std::optional<GraphFaults::Slots> slots = parts_.faults.TakeForGraph(count)) {
        fault_set_ = faults.AddSet(std::move(*slots));
        return std::nullopt;
      }
    }
    const auto [launching, ticket] = *faults.Oldest();
    if (parts_.waits.WaitsForEnd(stream_, *launching, ticket)) return parts_.waits.Park(stream_, ParkReason::kWindow);
  }
}

void GraphLaunch::AddFaultPatches(std::vector<hal::GraphPatch>& patches) {
  // With nodes in bodies there is one set.
  if (graph_.faults == nullptr || plan_->fault_set == fault_set_) return;
  auto slot = graph_.faults->SlotsOf(fault_set_).begin();
  for (const auto& [node, param, kernel, body] : plan_->checked) {
    patches.push_back({node, param, reinterpret_cast<uintptr_t>(*slot++)});
  }
  for (const auto& [copy, body] : plan_->reporting_copies) {
    patches.push_back({copy, hal::GraphPatch::kReport, reinterpret_cast<uintptr_t>(*slot++)});
  }
}

}  // namespace millrace
