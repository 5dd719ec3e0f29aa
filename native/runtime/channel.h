// A device's channel: what its threads share, put together from parts that each name their lock or their thread.
//
//   owners  ──► SubmissionQueue: tickets, ring ──► ChannelThread ──► Issuer (issue/) ──► hal::Stream
//   control ──► DeviceControl ──► hal::Device, and by ThreadInbox ──► ChannelThread ──► ResourceTables
//
// A channel never blocks. A record that cannot be issued yet parks its stream: it and the stream's later records wait
// in the stream's own list, and the channel goes on with the others. The thread that removes the reason wakes the
// stream, or posts a change of the tables, through the inbox, which rings the bell.
//
// Which waits are right across channels: a wait names a point that was submitted before it, possibly to a channel that
// has not got so far. If the point is not issued there, the stream parks until it is; the oldest record that nobody
// issued yet waits for nothing, so there is no deadlock.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hal/hal.h"
#include "runtime/blocking_calls_thread.h"
#include "runtime/channel_stats.h"
#include "runtime/channel_thread.h"
#include "runtime/device_access.h"
#include "runtime/device_control.h"
#include "runtime/device_loss.h"
#include "runtime/fault_reports.h"
#include "runtime/owner_cleanup.h"
#include "runtime/page_locks.h"
#include "runtime/peers.h"
#include "runtime/recorder.h"
#include "runtime/resource_tables.h"
#include "runtime/stream_table.h"
#include "runtime/submission_queue.h"
#include "runtime/thread_inbox.h"

namespace millrace {

/// It has no state besides the parts, so no lock: each section says which thread may call it.
class Channel final : public StreamWaker, public KernelFailures, public std::enable_shared_from_this<Channel> {
 public:
  struct Opening {
    uint32_t ordinal = 0;
    std::span<protocol::TimelineSlot> timeline;
    uint32_t max_pending = 0;
    uint64_t memory_limit = 0;     // Bytes for arrays of a CPU device; 0: all that it has.
    bool is_guarded = false;       // See hal::Device::GuardMemory.
    std::optional<uint32_t> seed;  // See hal::Device::Reseed.
    uint32_t threads = 0;          // Of a CPU device; 0: as many as the machine has.
    protocol::Schedule schedule = protocol::Schedule::kAuto;
    /// Keeps the timeline, and host memory that copies use, for as long as the channel or its thread lives.
    std::shared_ptr<const void> memory;
    /// Of an owner in another process. `memory` keeps it.
    remote::RecordSource* source = nullptr;
    /// The channel's id; 0: the next one of this process.
    uint32_t id = 0;
  };
  using Submission = millrace::Submission;
  using KernelInstall = millrace::KernelInstall;
  static constexpr uint32_t kMaxHandles = ResourceTables::kMaxHandles;

  /// Opens the device and starts its thread. Thread: control. Blocks while the device opens.
  static Result<std::shared_ptr<Channel>> Open(hal::Backend& backend, const Opening& opening, uint32_t id);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] uint32_t id() const { return device_.id(); }
  [[nodiscard]] const hal::Backend& backend() const { return device_.backend(); }
  [[nodiscard]] const hal::DeviceInfo& info() const { return device_.info(); }

  // ── Owners. Thread: any. ──
  Submission Submit(std::span<const std::byte> bytes) { return submissions_.Submit(bytes); }
  /// As SubmissionQueue does. Thread: the channel's.
  Ticket Forward(std::span<const std::byte> bytes) { return submissions_.Forward(bytes); }
  [[nodiscard]] const SubmissionQueue& submissions() const { return submissions_; }
  /// As SubmissionQueue does.
  int64_t ReserveStream(std::shared_ptr<WakeTarget> owner, uint32_t owner_id = 0) {
    return submissions_.ReserveStream(std::move(owner), owner_id);
  }
  /// As ResourceTables does.
  uint32_t ReserveHandles(protocol::HandleKind kind, uint32_t count) { return tables_.ReserveHandles(kind, count); }
  Ticket LastTicket(uint32_t stream) { return submissions_.LastTicket(stream); }
  auto PendingPoints() { return submissions_.PendingPoints(); }
  /// Asks for a wake at `ticket`; false when there is nothing to wait for.
  bool Arm(uint32_t stream, Ticket ticket);
  FailureLog::Part Failures(uint32_t stream, uint32_t from, uint32_t count);
  /// As FaultReports::Reported.
  void Reported(uint32_t stream, Ticket through);
  /// Code does not ask what earlier records should have written to these bytes of host memory.
  void ReportedOf(uint32_t handle, uint64_t offset, uint64_t bytes);
  [[nodiscard]] StatusCode LostStatus() const { return loss_.status(); }
  [[nodiscard]] int32_t LostDriverCode() const { return loss_.driver_code(); }
  [[nodiscard]] ChannelStats Stats();
  /// The HOLD or EXTERNAL record with this ticket completes, whether it was issued already or not.
  void ReleaseHold(uint32_t stream, Ticket ticket) { Release(stream, ticket, false); }
  /// The same for an EXTERNAL record whose function failed: the record fails.
  void FailExternal(uint32_t stream, Ticket ticket) { Release(stream, ticket, true); }
  /// The last ticket of an EXTERNAL record whose function may be called; 0 without one. The owner is woken at each.
  [[nodiscard]] Ticket ReadyExternal(uint32_t stream);
  /// As hal::Device::EnterContext and hal::Backend::LeaveContext.
  [[nodiscard]] Result<uint64_t> EnterContext();
  void LeaveContext() { device_.backend().LeaveContext(); }
  /// As hal::Device::BeginCapture. Thread: as there.
  [[nodiscard]] auto BeginCapture() {
    return device_.With([](hal::Device& device) { return device.BeginCapture(); });
  }
  // As DeviceControl does.
  void BindCaptured(uint32_t handle, std::shared_ptr<hal::Kernel> kernel) {
    control_.BindCaptured(handle, std::move(kernel));
  }
  void DropKernel(uint32_t handle) { control_.DropKernel(handle); }
  /// The driver's stream; nothing until it was made.
  [[nodiscard]] std::optional<uint64_t> StreamHandle(uint32_t stream);
  [[nodiscard]] std::optional<uint64_t> MemoryAddress(uint32_t handle) { return tables_.AddressOf(handle); }
  void Hold(bool on) { inbox_.Hold(on); }
  /// As Recorder does.
  void StartRecording(uint32_t owner_id, size_t most, protocol::DeviceTimes times) {
    recorder_.Start(owner_id, most, times);
  }
  void StopRecording(uint32_t owner_id) { recorder_.Stop(owner_id); }
  [[nodiscard]] bool IsRecorded() const { return recorder_.IsOn(); }
  /// A record was submitted at `now`, with this ticket.
  void NoteSubmitted(std::span<const std::byte> record, Ticket ticket, uint64_t now) {
    recorder_.NoteSubmitted(record, ticket, now);
  }
  /// What was recorded up to now. Of a device that has to be asked, what has completed since the last call follows in
  /// the next one.
  Recorder::Taken TakeTimes(uint32_t owner_id, std::span<protocol::RecordedTime> into);
  /// As hal::Device does. Afterwards TakeTimes has the times of all that had completed before. Thread: control.
  Status AlignClocks();
  /// Keeps a copy of the bytes for the graph's first launch, which reads them. `owner_id` as at ReserveStream.
  void DefineGraph(uint32_t handle, std::span<const std::byte> definition, uint32_t owner_id);
  /// Streams that have not come to the end of what was issued, or, of a device that was given up, that still run.
  [[nodiscard]] std::vector<uint32_t> BusyStreams();

  // ── Control. Thread: control. ──
  // As DeviceControl does.
  auto InstallKernel(uint32_t handle, const KernelInstall& install) { return control_.InstallKernel(handle, install); }
  auto InstallPlan(uint32_t handle, const hal::LibraryPlan& plan) { return control_.InstallPlan(handle, plan); }
  void FailKernel(uint32_t handle, Status why) { control_.FailKernel(handle, why); }
  Status LoadModule(uint32_t module, std::span<const std::byte> image) { return control_.LoadModule(module, image); }
  auto BindVariable(uint32_t handle, uint32_t module, const std::string& name, uint64_t bytes) {
    return control_.BindVariable(handle, module, name, bytes);
  }
  void FailVariable(uint32_t handle, uint64_t bytes, FailureId failure) {
    control_.FailVariable(handle, bytes, failure);
  }
  Status RegisterHost(uint32_t handle, std::span<std::byte> bytes, bool page_lock) {
    return control_.RegisterHost(handle, bytes, page_lock);
  }
  Status UnregisterHost(uint32_t handle) { return control_.UnregisterHost(handle); }
  auto Peer(uint32_t ordinal, protocol::PeerWhat what) { return control_.Peer(ordinal, what); }
  auto SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) {
    return control_.SetPeer(ordinal, what, is_granted);
  }
  auto ProbePeer(uint32_t from) { return control_.ProbePeer(from); }
  auto Elapsed(uint32_t start, uint32_t end) { return control_.Elapsed(start, end); }
  auto ExportEvent(uint32_t event_handle) { return control_.ExportEvent(event_handle); }
  Status OpenEvent(uint32_t event_handle, const hal::IpcHandle& ipc) { return control_.OpenEvent(event_handle, ipc); }
  auto ExportMemory(uint32_t memory) { return control_.ExportMemory(memory); }
  Status OpenMemory(uint32_t memory, const hal::IpcHandle& ipc, uint64_t bytes) {
    return control_.OpenMemory(memory, ipc, bytes);
  }
  /// As DeviceAccess::With.
  template <typename Call>
  auto WithDevice(Call call) {
    return device_.With(std::move(call));
  }
  /// The id of a failure of no stream's. Thread: any.
  static FailureId ReserveFailure() { return NextFailureId(); }

  // ── The end. Thread: control. ──
  /// A thread that shared the device is gone: what it submitted runs to its end, its holds are released, its streams
  /// are destroyed, and what it has not freed is freed. Calls `done` once then, on the channel's thread or at once.
  void OwnerLeft(uint32_t owner_id, std::function<void()> done) {
    recorder_.Stop(owner_id);
    owners_.OwnerLeft(owner_id, std::move(done));
  }
  /// Refuses new records; the thread runs the queued ones to their end, closes the device and ends.
  void BeginClose();
  /// Gives up what is queued; the thread closes the device and ends as soon as nothing runs any more. A kernel that
  /// does not end keeps the thread, and all that both use, for good.
  void BeginAbandon();
  /// Calls `done` once when the thread ends, on that thread, or at once. Thread: any.
  void OnExit(std::function<void()> done) { thread_.OnExit(std::move(done)); }
  /// BeginClose, and waits for the thread to end.
  void Close();
  /// BeginAbandon, and waits for the thread until `deadline`.
  void Abandon(std::chrono::milliseconds deadline);

  // ── Other channels. Thread: any. ──
  void WakeStream(uint32_t stream) noexcept override;
  void KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failure) noexcept override {
    faults_.KernelFailed(stream, ticket, failure);
  }
  [[nodiscard]] StreamState* FindStream(uint32_t stream) { return streams_.Find(stream); }
  [[nodiscard]] DeviceAccess& access() { return device_; }
  [[nodiscard]] ResourceTables& tables() { return tables_; }
  [[nodiscard]] Peers& peers() { return peers_; }
  void MarkLost(Status why) { loss_.Mark(why); }
  /// Somebody began to wait for progress of a stream of this channel, which may sleep.
  void AskIfPolled();

 private:
  void Release(uint32_t stream, Ticket ticket, bool has_failed);
  void TellTimes();
  Channel(hal::Backend& backend, const Opening& opening, uint32_t id);

  const std::shared_ptr<const void> shared_memory_;  // Outlives what follows.
  DeviceAccess device_;
  Recorder recorder_;
  StreamTable streams_;
  ThreadInbox inbox_;
  ResourceTables tables_;
  Peers peers_;
  DeviceLoss loss_;
  SubmissionQueue submissions_;
  PageLocks locks_;
  DeviceControl control_;
  FaultReports faults_;
  OwnerCleanup owners_;
  alignas(64) BlockingCallsThread blocking_calls_;
  ChannelThread thread_;
};

}  // namespace millrace
