// The reports of faults of one device, as failures of their streams: those that a kernel or a copy wrote to its slot
// (fault_slots.h), and those that a thread of the CPU device hands over.
#pragma once

#include <cstddef>
#include <optional>

#include "hal/hal.h"
#include "runtime/channel_parts.h"
#include "runtime/fault_slots.h"
#include "runtime/graph_faults.h"
#include "runtime/stream_state.h"

namespace millrace {

/// slots_ is the channel's thread's; the reports of a stream are guarded by its FaultWatch and its FailureLog, those of
/// a graph by its GraphFaults.
class FaultReports {
 public:
  FaultReports(DeviceAccess& device, ResourceTables& tables, DeviceLoss& loss)
      : device_(device), tables_(tables), loss_(loss) {}

  /// The first slots. Thread: control, before the channel's thread starts.
  Status Reserve();
  /// A slot for a record that the stream issues. Null when no memory for reports could be had. Thread: channel.
  protocol::FaultSlot* Take(StreamState& stream);
  /// Slots for the nodes of a graph, until GiveBack. Nothing when Take would return null. Thread: channel.
  std::optional<GraphFaults::Slots> TakeForGraph(size_t count);
  void GiveBack(const GraphFaults::Slots& slots);
  /// The device closes. Thread: channel.
  void Clear() { slots_.Clear(); }

  /// A kernel or a copy has written a report that Collect has not seen. Thread: any.
  [[nodiscard]] static bool HasReport(StreamState& stream);
  /// Turns the stream's reports into failures. Thread: any.
  static void Collect(StreamState& stream);
  /// Turns the graph's reports into failures of the streams that launched it. Thread: any.
  static void CollectGraph(GraphFaults& faults);
  /// As CollectGraph, and frees the slots of launches that have completed. Thread: channel.
  static void RetireGraph(GraphFaults& faults);
  /// As KernelFailures::KernelFailed.
  void KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failed);

  /// Take returned null.
  [[nodiscard]] static Status NoSlot();
  /// A copy found its memory gone.
  [[nodiscard]] static Status Gone();

 private:
  static void FailLaunch(const GraphFaults::Node& node, const protocol::FaultSlot& slot, GraphFaults::Launch& launch);

  DeviceAccess& device_;
  ResourceTables& tables_;
  DeviceLoss& loss_;
  FaultSlots slots_;
};

}  // namespace millrace
