#include "runtime/fault_reports.h"

#include <atomic>
#include <optional>

#include "runtime/device_access.h"
#include "runtime/device_loss.h"
#include "runtime/resource_tables.h"

namespace millrace {

Status FaultReports::Reserve() {
  return slots_.Reserve(device_.device());
}

protocol::FaultSlot* FaultReports::Take(StreamState& stream) {
  stream.faults.Retire(stream.Completed(), slots_);
  return slots_.Take(device_.device());
}

std::optional<GraphFaults::Slots> FaultReports::TakeForGraph(size_t count) {
  GraphFaults::Slots taken;
  while (taken.size() < count) {
    protocol::FaultSlot* const slot = slots_.Take(device_.device());
    if (slot == nullptr) {
      GiveBack(taken);
      return std::nullopt;
    }
    taken.push_back(slot);
  }
  return taken;
}

void FaultReports::GiveBack(const GraphFaults::Slots& slots) {
  for (protocol::FaultSlot* const slot : slots) slots_.GiveBack(slot);
}

bool FaultReports::HasReport(StreamState& stream) {
  return std::atomic_ref(stream.slot().fault).load(std::memory_order_acquire) != 0;
}

void FaultReports::Collect(StreamState& stream) {
  // Keep the word set until the reports are failures: an owner that saw it cleared would treat the launch as a success.
  // Each call has its own value, so it does not clear the word while another thread collects a later report.
  static std::atomic<uint32_t> calls{0};
  const uint32_t own = 2 + calls.fetch_add(1, std::memory_order_relaxed) % 0x7fffffff;
  const std::atomic_ref flag(stream.slot().fault);
  flag.store(own, std::memory_order_seq_cst);
  stream.faults.Collect([&](FaultWatch::Watched& watched) {
    const bool is_copy = watched.kernel == 0;
    const Failure failure{.id = NextFailureId(),
                          .first = watched.ticket,
                          .last = watched.ticket,
                          .status = is_copy ? Gone() : Status(StatusCode::kBounds, "an array access is out of bounds"),
                          .kernel = watched.kernel,
                          .has_fault = !is_copy,
                          .fault = *watched.slot};
    const uint32_t id = stream.failures.Add(failure, stream.slot());
    for (const FaultWatch::Output& output : watched.outputs) output.entry->poison.SetIf(output.version, id);
    watched.outputs.clear();
  });
  bool must_ask = false;
  for (const std::shared_ptr<GraphFaults>& graph : stream.faults.Graphs()) {
    // Asked first: a launch that has completed by now has written its report.
    must_ask |= graph->MustAsk(stream);
    CollectGraph(*graph);
  }
  if (must_ask) return;
  // Clear it, unless another kernel has set it meanwhile.
  uint32_t collecting = own;
  flag.compare_exchange_strong(collecting, 0);
}

void FaultReports::FailLaunch(const GraphFaults::Node& node, const protocol::FaultSlot& slot,
                              GraphFaults::Launch& launch) {
  const bool is_copy = node.kernel == 0;
  const Failure failure{.id = NextFailureId(),
                        .first = launch.ticket,
                        .last = launch.ticket,
                        .status = is_copy ? Gone() : Status(StatusCode::kBounds, "an array access is out of bounds"),
                        .kernel = node.kernel,
                        .node = node.node,
                        .has_fault = !is_copy,
                        .fault = slot};
  const uint32_t id = launch.stream->failures.Add(failure, launch.stream->slot());
  for (const auto& [entry, version] : launch.outputs) entry->poison.SetIf(version, id);
  launch.outputs.clear();
}

void FaultReports::CollectGraph(GraphFaults& faults) {
  faults.Collect(FailLaunch);
}

void FaultReports::RetireGraph(GraphFaults& faults) {
  faults.Retire(FailLaunch);
}

void FaultReports::KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failed) {
  const Failure failure{.id = NextFailureId(),
                        .first = ticket,
                        .last = ticket,
                        .status = failed.status,
                        .kernel = failed.kernel,
                        .node = failed.node,
                        .has_fault = true,
                        .fault = failed.report};
  const uint32_t id = stream.failures.Add(failure, stream.slot());
  for (const uint64_t output : failed.outputs) {
    const std::optional<MemoryRef> found = tables_.memory.Look(static_cast<uint32_t>(output));
    if (found) (*found)->poison.SetIf(static_cast<uint32_t>(output >> 32), id);
  }
  // Those of other devices have no name here.
  if (failed.node != hal::kNoNode) {
    for (const std::shared_ptr<GraphFaults>& graph : stream.faults.Graphs()) graph->Poison(stream, ticket, id);
  }
  if (failed.status.code() == StatusCode::kDeviceLost) loss_.Mark(failed.status);
}

Status FaultReports::NoSlot() {
  return Status(StatusCode::kOutOfMemory, "no memory for fault reports");
}

Status FaultReports::Gone() {
  return Status(StatusCode::kDeviceLost, "a device whose memory the copy uses is lost or closed");
}

}  // namespace millrace
