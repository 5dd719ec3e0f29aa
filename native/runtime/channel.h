// The way records reach a device, and the one thread that takes them there.
//
//   owners ── Submit ──► ring ──► Run: read, resolve handles, park or issue ──► hal::Stream
//
// A channel never blocks. A record that cannot be issued yet parks its stream: it and the stream's later records wait
// in the stream's own list, and the channel goes on with the others. Whoever takes the reason away calls WakeStream, or
// posts a change of the channel's tables, and rings the bell.
//
// Which waits are right across channels: a wait names a point that was submitted before it, possibly to a channel that
// has not got so far. If the point is not issued there, the stream parks until it is; the oldest record that nobody
// issued yet waits for nothing, so there is no deadlock.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hal/hal.h"
#include "runtime/doorbell.h"
#include "runtime/handle_table.h"
#include "runtime/host_entry.h"
#include "runtime/memory_entry.h"
#include "runtime/outputs.h"
#include "runtime/owners.h"
#include "runtime/peers.h"
#include "runtime/pump.h"
#include "runtime/record_reader.h"
#include "runtime/ring.h"
#include "runtime/shared_table.h"
#include "runtime/streams.h"

namespace millrace {

struct CopyEnd;
struct CopyWork;

struct ParkedStream {
  uint32_t stream;
  ParkReason reason;
  uint64_t deferred;  // Records submitted and not issued.
};

struct ChannelStats {
  uint64_t pending_records = 0;
  uint64_t ring_bytes = 0;
  uint64_t live_memory = 0;
  uint64_t live_bytes = 0;
  uint64_t staging_bytes = 0;  // Of these, what copies hold for a moment.
  uint64_t pinned_bytes = 0;   // Host memory that is page-locked.
  uint32_t streams = 0;
  std::vector<ParkedStream> parked;
};

class Channel final : public StreamWaker, public KernelFailures, public std::enable_shared_from_this<Channel> {
 public:
  struct Opening {
    uint32_t ordinal = 0;
    std::span<protocol::TimelineSlot> timeline;
    uint32_t max_pending = 0;
    /// Keeps the timeline, and host memory that copies use, for as long as the channel or its thread lives.
    std::shared_ptr<const void> memory;
  };
  /// Opens the device and starts its thread. Thread: control. Blocks while the device opens.
  static Result<std::shared_ptr<Channel>> Open(hal::Backend& backend, const Opening& opening, uint32_t id);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] uint32_t id() const { return id_; }
  [[nodiscard]] const hal::Backend& backend() const { return backend_; }
  [[nodiscard]] const hal::DeviceInfo& info() const { return device_->info(); }

  // ── Owners. Thread: any. ──
  /// Indices of handles of one kind.
  static constexpr uint32_t kMaxHandles = 1u << protocol::kHandleIndexBits;
  struct Submission {
    Ticket ticket = 0;
    StatusCode refused = StatusCode::kOk;  // With nothing claimed and nothing queued.
  };
  Submission Submit(std::span<const std::byte> bytes);
  /// A free timeline slot, or -1. `owner_id`: of a thread that shares the device, for OwnerLeft; else 0.
  int64_t ReserveStream(std::shared_ptr<WakeTarget> owner, uint32_t owner_id = 0);
  /// The first of a run of indices, or kMaxHandles when there are not so many left.
  uint32_t ReserveHandles(protocol::HandleKind kind, uint32_t count);
  Ticket LastTicket(uint32_t stream);
  /// Asks for a wake at `ticket`; false when there is nothing to wait for.
  bool Arm(uint32_t stream, Ticket ticket);
  std::vector<Failure> Failures(uint32_t stream, uint32_t from);
  [[nodiscard]] StatusCode LostStatus() const { return lost_.load(std::memory_order_acquire); }
  [[nodiscard]] ChannelStats Stats();
  /// The HOLD record with this ticket completes, whether it was issued already or not.
  void ReleaseHold(uint32_t stream, Ticket ticket);
  /// The driver's stream; nothing until it was made.
  [[nodiscard]] std::optional<uint64_t> StreamHandle(uint32_t stream);
  /// Where memory is on the device; nothing until it was made. Waits for no more than the end of its very record.
  [[nodiscard]] std::optional<uint64_t> MemoryAddress(uint32_t handle);
  void Hold(bool on);
  /// Streams that have not come to the end of what was issued, or, of a device that was given up, that still run.
  [[nodiscard]] std::vector<uint32_t> BusyStreams();

  // ── Control. Thread: control. ──
  struct KernelInstall {
    hal::KernelRequest request;
    bool is_checked = false;
    /// It is of this module, whatever the request's image is.
    std::optional<uint32_t> module;
  };
  Result<hal::KernelLimits> InstallKernel(uint32_t handle, const KernelInstall& install);
  void FailKernel(uint32_t handle, Status why);
  /// Keeps it under a number that the owner chose, until the device closes.
  Status LoadModule(uint32_t module, std::span<const std::byte> image);
  /// Binds a variable of so many bytes to a memory handle, for good; of another size, it is only told how many it has.
  Result<uint64_t> BindVariable(uint32_t handle, uint32_t module, const std::string& name, uint64_t bytes);
  /// There is no such variable: its memory is poisoned by this failure.
  void FailVariable(uint32_t handle, uint64_t bytes, uint32_t failure);
  /// The id of a failure of no stream's. Thread: any.
  static uint32_t ReserveFailure() { return next_failure_.fetch_add(1); }
  Status RegisterHost(uint32_t handle, std::span<std::byte> bytes, bool page_lock);
  /// Lets go of host memory that no queued record names any more. Blocks for the channel and the driver.
  Status UnregisterHost(uint32_t handle);
  /// `call(hal::Device&)` on an open device, which does not close meanwhile; else its result is a failure. For what a
  /// backend lets this thread do; `call` must not wait for the channel.
  template <typename Call>
  auto WithDevice(Call call) -> std::invoke_result_t<Call, hal::Device&> {
    std::shared_lock lock(device_mutex_);
    if (is_shut_) return Closed();
    return call(*device_);
  }
  /// Tries the route from an open device of the same backend to this one; copies between them wait until then. Blocks.
  Result<protocol::PeerRoute> ProbePeer(uint32_t from);
  /// Milliseconds between two complete timing events.
  Result<double> Elapsed(uint32_t start, uint32_t end);
  /// Binds the event if it was never recorded.
  Result<hal::IpcHandle> ExportEvent(uint32_t event_handle);
  Status OpenEvent(uint32_t event_handle, const hal::IpcHandle& ipc);
  Result<hal::IpcHandle> ExportMemory(uint32_t memory);
  /// Records that name the handle wait for it; when it cannot be opened, they fail.
  Status OpenMemory(uint32_t memory, const hal::IpcHandle& ipc, uint64_t bytes);
  /// A thread that shared the device is gone: what it submitted runs to its end, its holds are released, its streams
  /// are destroyed, and what it has not freed is freed. Calls `told` once then, on the channel's thread or at once.
  void OwnerLeft(uint32_t owner_id, std::function<void()> told);
  /// Refuses new records; the thread runs the queued ones to their end, closes the device and ends.
  void BeginClose();
  /// Gives up what is queued; the thread closes the device and ends as soon as nothing runs any more. A kernel that
  /// does not end keeps the thread, and all that both use, for good.
  void BeginAbandon();
  /// Calls `told` once when the thread ends, on that thread, or at once. Thread: any.
  void OnExit(std::function<void()> told);
  /// BeginClose, and waits for the thread to end.
  void Close();
  /// BeginAbandon, and waits for the thread until `deadline`.
  void Abandon(std::chrono::milliseconds deadline);

  // ── Other channels and the watcher. Thread: any. ──
  void WakeStream(uint32_t stream) noexcept override;
  void KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failure) noexcept override;
  /// Held while somebody else uses this channel's backend streams, and by this channel while it makes or destroys one.
  [[nodiscard]] std::mutex& access_mutex() { return access_mutex_; }
  /// Null once the device is closed. `access_mutex` is held.
  [[nodiscard]] hal::Device* device() { return is_closed_ ? nullptr : device_.get(); }
  [[nodiscard]] StreamState* FindStream(uint32_t stream);
  void MarkLost(Status why);
  /// Somebody waits for progress of a stream of this channel; on a polled device somebody has to look.
  void WatchIfPolled(StreamState& stream);

 private:
  enum class Outcome : uint8_t { kIssued, kParked };
  enum class ResourceState : uint8_t { kPending, kReady, kFailed };

  struct KernelEntry {
    ResourceState state = ResourceState::kPending;
    std::shared_ptr<hal::Kernel> kernel;
    bool is_checked = false;
    Status failure;
    std::vector<uint32_t> parked;
  };
  struct EventEntry {
    std::unique_ptr<hal::EventHandle> event_handle;
    protocol::EventKind kind = protocol::EventKind::kTiming;
    StreamState* stream = nullptr;  // Of the last record; null before the first.
    Ticket ticket = 0;
  };
  using EventRef = std::shared_ptr<EventEntry>;
  enum class Sight : uint8_t { kFound, kLater, kMalformed };

  Channel(hal::Backend& backend, const Opening& opening, uint32_t id);

  // channel_loop.cpp
  void Run();
  bool DrainNotices();
  void RunChanges();
  bool DrainRing();
  void Proceed(StreamState& stream);
  void SignalDirty();
  void TellProgress();
  bool PollUnfinished();
  bool IsDrained();
  void Idle(bool is_recent);
  /// False once the channel has finished: there is nothing left to change.
  bool Post(std::function<void()> change);
  void RunOnChannel(std::function<void()> change);
  bool HasWork();
  void AwaitEnds();
  bool HasBusyStream();
  void Finish();
  /// Page-locks the bytes, unless a range that has them all is locked already.
  Status Lock(std::span<std::byte> bytes);
  Status Unlock(std::span<std::byte> bytes);
  void UnlockAll();
  LockedPages* FindLocked(std::span<std::byte> bytes);  // `locked_mutex_` is held.

  // channel_owners.cpp: threads that share the device.
  void EndOwner(uint32_t owner_id, std::function<void()> told);
  template <typename Body>
  void SubmitOwn(StreamState& stream, Body record = {});
  bool FreeLeftBehind(StreamState& stream);
  void OwnedStreamEnded(uint32_t owner_id);
  void SlotFreed();
  bool OwnsAnything(uint32_t owner_id);
  void TellAllLeft();
  void EndClaim(StreamState& stream);
  void Own(const StreamState& stream, uint32_t memory);
  void OwnEvent(const StreamState& stream, uint32_t event);

  // issue*.cpp: one record.
  Outcome Issue(StreamState& stream, const Record& record);
  Outcome IssueKnown(StreamState& stream, Ticket ticket, const Record& record);
  Outcome IssueCreate(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueDestroy(StreamState& stream, Ticket ticket);
  Outcome IssueAlloc(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome AllocFromPool(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record);
  Outcome AllocByPump(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record);
  Outcome FailAlloc(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record, Status why);
  Outcome IssueAdopt(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueFree(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueFill(StreamState& stream, Ticket ticket, RecordReader& reader);
  template <typename Call>
  Outcome FillEntry(StreamState& stream, Ticket ticket, MemoryRef& entry, bool is_whole, Call call);
  Outcome IssueCopy(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueCopyStrided(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueFillStrided(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueLaunch(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueWait(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueRecordEvent(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueFreeEvent(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueWaitEvent(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome IssueHold(StreamState& stream, Ticket ticket);
  Result<EventRef> CreateEvent(uint32_t handle, protocol::EventKind kind);

  /// The channel with this id; null when it is not open any more.
  std::shared_ptr<Channel> HomeOf(uint32_t device);
  /// Looks for one end of a copy in the tables of its device, which does not close meanwhile.
  Sight FindEnd(StreamState& stream, CopyEnd& end, const CopyWork& copy);
  Outcome CopyBetween(StreamState& stream, Ticket ticket, CopyWork& copy);
  /// Host memory that is not page-locked: the pump copies it once the stream has run what came before.
  Outcome CopyByPump(StreamState& stream, Ticket ticket, const CopyWork& copy);
  Outcome EndPumpedCopy(StreamState& stream, Ticket ticket);
  Outcome StageByPump(StreamState& stream, uint64_t bytes);
  void NoteForeignUse(StreamState& stream, Ticket ticket, const CopyWork& copy);
  /// Gives the record to the pump and parks the stream until `work` is done with it.
  Outcome PumpFor(StreamState& stream, ParkReason reason, std::shared_ptr<PumpedRecord> record,
                  std::function<void(PumpedRecord&)> work);

  Outcome Park(StreamState& stream, ParkReason reason);
  /// True when `of` has not completed the ticket: it is then looked after, and the stream is woken when it has.
  bool WaitsForEnd(StreamState& stream, StreamState& of, Ticket ticket);
  Outcome Fail(StreamState& stream, Ticket ticket, const Failure& failure, const Outputs& outputs);
  /// As Fail, unless the driver's answer is that the device is lost.
  Outcome FailDriver(StreamState& stream, Ticket ticket, Status status, uint32_t kernel, const Outputs& outputs);
  /// The end of a record that cannot run although all it names was found: its stream is poisoned or could not be
  /// created, or `cause` poisoned what it reads. Nothing when it can.
  std::optional<Outcome> FailUnready(StreamState& stream, Ticket ticket, uint32_t cause, const Outputs& outputs);
  Outcome FailMalformed(StreamState& stream, Ticket ticket);
  /// The stream waits for a device that is lost: this and every later record of it fails, each in its order.
  Outcome Poison(StreamState& stream, Ticket ticket, uint32_t device);
  Outcome FailPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs);
  void RecordPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs);
  /// A copy names memory of a device that is lost or closed. `device`: the channel of the one that is gone, or 0.
  Outcome FailGone(StreamState& stream, Ticket ticket, const Outputs& outputs, uint32_t device);
  static Status Gone();
  /// Parks for something that `other` will do, unless it never will.
  Outcome ParkFor(StreamState& stream, const Channel& other, ParkReason reason);
  Outcome LookAgain(StreamState& stream);
  uint32_t RecordFailure(StreamState& stream, Ticket ticket, Failure failure, const Outputs& outputs);
  static Status NoStream();
  static Status NoSlot();
  static Status Closed();
  Result<protocol::PeerRoute> Probe(Channel* other);
  /// True when memory may yet come back from frees that are under way; the stream is then woken.
  bool WaitsForFrees(StreamState& stream);
  void ForgetEndedFrees();
  void NotePendingFree(StreamState& stream, Ticket ticket);
  /// Whether a stream with deferred records can go on although `allocating` does not, as far as can be told now.
  bool GoesOnWithout(const StreamState& allocating, StreamState& parked);
  /// Allocations that count on a parked free are tried again.
  void LookForMemoryAgain();
  void CloseTicket(StreamState& stream, Ticket ticket);
  /// True when the handle may still be allocated by a record that has not been issued; the stream then waits for it.
  bool WaitsForMemory(StreamState& stream, uint32_t handle);
  void BindMemory(uint32_t handle, protocol::AllocKind kind, uint64_t bytes, std::unique_ptr<hal::Memory> memory);
  /// Null when no memory for reports could be had.
  protocol::FaultSlot* TakeFaultSlot(StreamState& stream);
  void CollectFaults(StreamState& stream);

  /// Of the process: memory of one device can be poisoned by a failure on another.
  static inline std::atomic<uint32_t> next_failure_{1};

  hal::Backend& backend_;
  const uint32_t id_;
  const uint32_t max_pending_;
  const std::shared_ptr<const void> shared_memory_;  // Outlives what follows.
  const std::span<protocol::TimelineSlot> timeline_;
  std::unique_ptr<hal::Device> device_;
  bool needs_polling_ = false;
  bool needs_locked_memory_ = false;

  // Guarded by the ring's producer mutex.
  Ring ring_;
  bool is_closing_ = false;
  uint64_t submitted_ = 0;
  uint64_t known_retired_ = 0;  // What `retired_` was when it was last looked at; looking costs a cache line.
  uint32_t free_search_ = 0;

  std::unique_ptr<std::atomic<StreamState*>[]> streams_;
  std::atomic<uint32_t> stream_count_{0};      // Slots ever used: streams_[0 .. n) are not null.
  std::atomic<uint32_t> next_handle_[4] = {};  // By HandleKind.
  /// Records issued or dropped. Written by the channel only.
  alignas(64) std::atomic<uint64_t> retired_{0};
  alignas(64) std::atomic<StatusCode> lost_{StatusCode::kOk};
  std::atomic<uint64_t> live_memory_{0};
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> staging_bytes_{0};
  std::atomic<uint64_t> pinned_bytes_{0};
  std::atomic<uint32_t> allocating_{0};  // The handle whose memory is being made right now.

  alignas(64) Bell bell_;
  std::atomic<bool> has_notices_{false};
  std::mutex notice_mutex_;
  // Guarded by notice_mutex_.
  std::vector<uint32_t> wakes_;
  std::vector<std::function<void()>> changes_;
  bool is_finished_ = false;  // The thread runs no more changes.

  // What other channels see of this one.
  alignas(64) SharedTable<MemoryRef> memory_;
  SharedTable<HostEntry> host_;
  PeerRoutes peer_routes_;
  PeerUsers peer_users_;

  // Channel thread only.
  alignas(64) HandleTable<KernelEntry> kernels_;
  HandleTable<EventRef> events_table_;
  Owners owners_;
  Pump pump_;
  std::vector<std::pair<StreamState*, Ticket>> pending_frees_;
  std::vector<uint32_t> awaiting_frees_;  // Streams parked for memory that count on a parked stream's free.
  std::vector<StreamState*> dirty_;       // Issued on since the last Signal.
  std::vector<StreamState*> recent_;      // Signalled last.
  FaultSlots fault_slots_;
  std::vector<MemoryRef*> outputs_scratch_;
  std::vector<uint64_t> output_names_scratch_;   // Of the same, their handles; then with their versions above them.
  std::vector<MemoryRef*> overwritten_scratch_;  // Of these, those it does not read.
  bool is_draining_ = false;                     // It has seen that it is to stop.

  std::atomic<bool> is_held_{false};
  std::atomic<bool> stop_when_drained_{false};
  std::atomic<bool> is_abandoned_{false};

  std::mutex access_mutex_;
  bool is_closed_ = false;  // Guarded by access_mutex_.

  /// Held shared by what the control thread asks of the device, which may take long, and by the channel to close it.
  /// Who holds it does not wait for a channel. Two are taken in the order of the channels' ids.
  std::shared_mutex device_mutex_;
  bool is_shut_ = false;  // Guarded by device_mutex_; the channel, which writes it, reads it without.
  /// Guarded by device_mutex_; while that is shared, they are the control thread's.
  std::unordered_map<uint32_t, std::shared_ptr<hal::Module>> modules_;

  std::mutex locked_mutex_;
  std::vector<LockedPages> locked_;  // Guarded by locked_mutex_.

  std::mutex exit_mutex_;
  std::condition_variable exit_;
  // Guarded by exit_mutex_.
  bool has_exited_ = false;
  std::vector<std::function<void()>> told_of_exit_;
};

}  // namespace millrace
