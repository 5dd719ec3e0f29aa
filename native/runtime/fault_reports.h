// The reports of faults, as failures of their streams: those that a kernel or a copy wrote to its slot (fault_slots.h),
// and those that a thread of the CPU device hands over. A failed record also fails every record in flight that derives
// from it (in_flight.h), on any stream and any device.
//
// Order of locks: the list of devices, then `mutex_` of each device in the order of the list, then the locks of a
// graph's reports and of a stream's failures. An issued record takes only the `mutex_` of its own device.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "hal/hal.h"
#include "runtime/channel_parts.h"
#include "runtime/fault_slots.h"
#include "runtime/graph_faults.h"
#include "runtime/quick_mutex.h"
#include "runtime/stream_state.h"

namespace millrace {

/// One for each open device. Thread: any, unless stated otherwise.
class FaultReports {
 public:
  FaultReports(DeviceAccess& device, StreamTable& streams, DeviceLoss& loss)
      : device_(device), streams_(streams), loss_(loss) {}
  ~FaultReports();
  FaultReports(const FaultReports&) = delete;
  FaultReports& operator=(const FaultReports&) = delete;

  /// The first slots. Thread: control, before the channel's thread starts.
  Status Reserve();
  /// A slot for a record that the stream issues. Null when no memory for reports could be had. Thread: channel.
  protocol::FaultSlot* Take();
  /// Slots for the nodes of a graph, until GiveBack. Nothing when Take would return null. Thread: channel.
  std::optional<GraphFaults::Slots> TakeForGraph(size_t count);
  void GiveBack(const GraphFaults::Slots& slots);
  /// The device's `fault` word, which kernels set.
  [[nodiscard]] uint32_t* word() const { return word_; }
  /// All streams have ended, and the device closes. Thread: channel.
  void Clear();

  /// The record to be noted next, to be filled in and given to Enter. It is plain. Thread: channel.
  [[nodiscard]] InFlight& Next(StreamState& stream) {
    if (stream.in_flight.size() % InFlightQueue::kStep == 0) MakeRoom(stream);
    return stream.in_flight.Next();
  }
  /// Notes what the record uses, and clears the poison of what it overwrites, before it is given to the backend: a
  /// report may arrive before the backend's call returns. If it reads what is poisoned, nothing is noted and the result
  /// is the failure; otherwise 0. Thread: channel.
  [[nodiscard]] FailureId Enter(StreamState& stream, InFlight& next);
  [[nodiscard]] FailureId Enter(StreamState& stream, const Entering& record);
  /// The memory was freed. Records in flight may still name it. Thread: channel.
  void KeepFreed(const MemoryRef& entry);
  /// Drops the records of the stream that have completed. Thread: channel.
  void Retire(StreamState& stream);
  /// The stream has ended: it has completed everything. Thread: channel.
  void End(StreamState& stream);
  /// Drops the launches of the graph that have completed. Thread: channel.
  static void RetireGraph(GraphFaults& faults);

  /// Whether a kernel or a copy of this device has written a report that Collect has not seen.
  [[nodiscard]] bool HasReport() const;
  /// The same of any device, and of graphs with nodes in bodies.
  [[nodiscard]] static bool IsAnyReported();
  /// Turns all reports into failures.
  static void Collect();
  /// As KernelFailures::KernelFailed.
  void KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failed);
  /// Poisons host memory that a record of the stream should have written.
  void PoisonHost(StreamState& stream, Ticket ticket, const HostRange& range, FailureId failure);
  /// The failures of the stream up to the ticket were reported to code: it may write to the host memory that these
  /// records should have written.
  static void Reported(StreamState& stream, Ticket through);
  /// The same of all failures of host memory.
  static void Reported(const HostRange& range);
  /// Whether there are failures of host memory that were not reported to code.
  [[nodiscard]] static bool HasUnreported();

  /// Take returned null.
  [[nodiscard]] static Status NoSlot();
  /// A record reads what an earlier failure poisoned.
  [[nodiscard]] static Status Upstream();
  /// A copy found its memory gone.
  [[nodiscard]] static Status Gone();

 private:
  /// A record in flight, and its stream.
  struct Sight {
    FaultReports* device = nullptr;
    StreamState* stream = nullptr;
    InFlight* record = nullptr;
    bool has_completed = false;
  };
  /// What a walk has found to be poisoned so far.
  struct Tainted;
  /// The failure of a record that is known although no report says so.
  struct Known {
    const InFlight* record = nullptr;
    const Failure* failure = nullptr;
  };
  class Devices;
  using Locks = std::vector<std::unique_lock<QuickMutex>>;

  /// The lock of the list is held.
  [[nodiscard]] static Locks LockAll(const std::vector<FaultReports*>& devices);
  static std::optional<GraphFaults::Report> ReportOf(const Sight& sight);
  static Failure FailureOf(const InFlight& record, const GraphFaults::Report& report);
  /// Fails the records that have a report, and those in flight that derive from them. All locks are held.
  static void Walk(const std::vector<FaultReports*>& devices, const Known& known);
  static void Step(const Sight& sight, const Known& known, Tainted& tainted);
  /// Whether it need not be noted: if nothing can fail late, no walk poisons anything.
  static bool IsMissed(bool may_fail);
  static void Overwrite(std::span<const MemoryUse> memory);
  static void Overwrite(std::span<const HostUse> host);
  FailureId Note(StreamState& stream, InFlight& next);
  [[nodiscard]] bool HasWordOfGraph();
  /// The failure that poisoned this host memory was not reported to code yet. The locks of the list and of the device
  /// are held.
  void AddUnreported(StreamState& stream, Ticket ticket, const HostRange& range, FailureId failure);
  struct Unreported;
  static void Report(const std::function<bool(const Unreported&)>& is);
  // The lock of the device is held.
  static void Forget(const Unreported& unreported);
  void AddAsking();
  void RemoveAsking();
  void Pop(StreamState& stream);
  void MakeRoom(StreamState& stream);

  DeviceAccess& device_;
  StreamTable& streams_;
  DeviceLoss& loss_;
  FaultSlots slots_;              // Thread: channel, after Reserve.
  std::vector<MemoryRef> freed_;  // Memory that records in flight name. Thread: channel.
  uint32_t* word_ = nullptr;
  uint32_t* asks_word_ = nullptr;

  QuickMutex mutex_;
  // Guarded by mutex_, as are the records in flight of the streams.
  uint32_t asking_ = 0;  // Records in flight that must_ask, and poisoned host memory whose failure was not reported.
};

}  // namespace millrace
