// The fault slots of a launch of a graph: each launch has slots of its own, in which its nodes report failures.
#include <algorithm>
#include <atomic>

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
  // What another device's memory was to get can only be found by the launch.
  const bool must_poison = plan_->has_foreign_outputs && !parts_.device.needs_polling();
  if (nodes.empty() && !must_poison) return true;
  const size_t count = nodes.size();
  if (count == 0) {
    graph_.faults = std::make_shared<GraphFaults>(std::move(nodes));
    return true;
  }
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
    if (word != nullptr) kernel.params[checked.param + 1] = reinterpret_cast<uintptr_t>(graph_.faults->word());
  }
  for (const auto& [node, body] : plan_->reporting_copies) {
    std::get<hal::GraphCopy>(plan_->NodeAt(node, body).work).host.report = *slot++;
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
    if (count == 0) return std::nullopt;
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
  // With nodes in bodies there is one set and one word.
  if (graph_.faults == nullptr || graph_.faults->nodes().empty() || graph_.faults->word() != nullptr) return;
  const GraphFaults::Slots& slots = graph_.faults->SlotsOf(fault_set_);
  const auto word = reinterpret_cast<uintptr_t>(&stream_.slot().fault);
  auto slot = slots.begin();
  for (const auto& [node, param, kernel, body] : plan_->checked) {
    if (plan_->fault_set != fault_set_) patches.push_back({node, param, reinterpret_cast<uintptr_t>(*slot)});
    if (plan_->word_stream != &stream_) patches.push_back({node, param + 1, word});
    ++slot;
  }
  if (plan_->fault_set == fault_set_) return;
  for (const auto& [copy, body] : plan_->reporting_copies) {
    patches.push_back({copy, hal::GraphPatch::kReport, reinterpret_cast<uintptr_t>(*slot++)});
  }
}

void GraphLaunch::Watch() {
  if (graph_.faults == nullptr) return;
  GraphFaults::Outputs outputs;
  for (const MemoryRef* const output : scratch_.outputs) outputs.emplace_back(*output, (*output)->poison.version());
  if (std::find(graph_.watched.begin(), graph_.watched.end(), &stream_) == graph_.watched.end()) {
    graph_.watched.push_back(&stream_);
    stream_.faults.AddGraph(graph_.faults);
  }
  graph_.faults->Watch(stream_, ticket_, fault_set_, std::move(outputs));
  // The nodes of such a graph do not tell the stream, so that whoever sees the launch complete asks for its report.
  if (graph_.faults->word() != nullptr) std::atomic_ref(stream_.slot().fault).store(1);
}

}  // namespace millrace
