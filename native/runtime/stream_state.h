// One timeline slot of a channel: its present stream, how far that is submitted, issued and completed, why it is
// parked, and its waiters.
//
// A StreamState lives as long as its channel and serves one stream after another. Tickets continue to count, so a point
// of an earlier stream stays completed.
//
//   submitted   `last_ticket`, claimed under the ring's producer mutex
//   issued      stored after the backend accepted the record; waits on other channels read it
//   completed   the larger of the timeline slot's two words
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hal/hal.h"
#include "runtime/blocking_calls_thread.h"
#include "runtime/deferred_records.h"
#include "runtime/failures.h"
#include "runtime/in_flight.h"
#include "runtime/recorder.h"
#include "runtime/waiting_streams.h"

namespace millrace {

using hal::Ticket;

/// An owner on a JavaScript thread that can be woken. Thread: any.
class WakeTarget {
 public:
  virtual ~WakeTarget() = default;
  virtual void Ring() noexcept = 0;
};

using protocol::ParkReason;
[[nodiscard]] const char* ParkReasonName(ParkReason reason);

class StreamState;

/// Receives kernel failures of streams; implemented by their channel. Thread: any.
class KernelFailures {
 public:
  virtual void KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failure) noexcept = 0;

 protected:
  ~KernelFailures() = default;
};

class StreamState final : public hal::ProgressSink {
 public:
  StreamState(uint32_t index, protocol::TimelineSlot& slot, KernelFailures& kernel_failures, Recorder& recorder)
      : ProgressSink(recorder.device_times()),
        index_(index),
        slot_(slot),
        kernel_failures_(kernel_failures),
        recorder_(recorder) {}

  [[nodiscard]] uint32_t index() const { return index_; }
  [[nodiscard]] protocol::TimelineSlot& slot() { return slot_; }

  // Each section has separate cache lines, because one thread may submit while another issues.

  // ── Submission. Guarded by the ring's producer mutex. ──
  Ticket last_ticket = 0;
  bool is_reserved = false;
  bool is_ending = false;               // Its STREAM_DESTROY record was submitted.
  StreamState* next_resting = nullptr;  // Of the slots without a stream.
  /// Which thread that shares the device reserved it; 0: the one that opened the device.
  uint32_t owner_id = 0;

  InFlightQueue in_flight;  // Guarded by the lock of its channel's FaultReports.

  // ── Channel thread only. ──
  alignas(64) std::unique_ptr<hal::Stream> backend;
  std::optional<hal::StreamRequest> refused;  // What the driver has refused; asked for again with each record.
  Ticket accepted = 0;         // The last ticket that the backend accepted; records of a lost device are only dropped.
  bool is_unfinished = false;  // It is on its channel's list of streams to ask the device about.
  bool needs_word = false;     // Records were issued since the last Signal.
  FailureId poisoned_by = 0;   // A wait that cannot be kept: the failure that every later record repeats,
  Status poison;               // with this status.
  uint32_t lost_device = 0;    // The channel of that lost device.
  Ticket noted_ticket = 0;     // What a recorded timeline was told last of a parked record,
  ParkReason noted_reason = ParkReason::kNone;  // and why it is.
  uint32_t claimed = 0;                         // The memory that its first deferred record, an ADOPT, waits for.
  bool has_owner_left = false;                  // No thread will release its holds.
  DeferredRecords deferred;
  /// The blocking call that the first deferred record needs, if there is any.
  std::shared_ptr<BlockingCall> blocking_call;
  /// Keeps `object` alive until the ticket has completed.
  void Keep(Ticket ticket, std::shared_ptr<void> object);
  /// Drops all state of the present stream, after its backend stream ended.
  void Forget();

  // ── Any thread. ──
  alignas(64) FailureLog failures;
  std::atomic<ParkReason> park{ParkReason::kNone};  // Written by the channel, read by any thread.
  std::atomic<bool> has_blocking_call{false};       // The blocking-calls thread has or runs work of it.
  std::atomic<bool> is_notified{false};             // It is on its channel's list of streams to continue.

  [[nodiscard]] Ticket Issued() const { return issued_.load(std::memory_order_seq_cst); }
  [[nodiscard]] Ticket Completed() const {
    return std::max(std::atomic_ref(slot_.device_word).load(std::memory_order_acquire),
                    std::atomic_ref(slot_.host_word).load(std::memory_order_acquire));
  }
  /// Wakes the streams that wait until this record is issued. Thread: channel.
  void MarkIssued(Ticket ticket);
  /// Completes tickets without a backend. Thread: channel.
  void CompleteOnHost(Ticket ticket);
  /// hal::ProgressSink: wakes the owner and the channels that wait for no more than `completed`.
  void Progress(Ticket completed) noexcept override;
  void Failed(Ticket ticket, const hal::KernelFailure& failure) noexcept override {
    kernel_failures_.KernelFailed(*this, ticket, failure);
  }
  void Ran(Ticket ticket, uint64_t begin, uint64_t end, uint16_t together) noexcept override {
    Note(protocol::RecordedKind::kRan, together, ticket, begin, end);
  }
  [[nodiscard]] bool IsRecorded() const { return recorder_.IsOn(); }
  /// Tells the recorded timeline why the record is parked, unless it was told. Thread: channel.
  void NoteParked(Ticket ticket, uint64_t now) noexcept {
    const ParkReason reason = park.load(std::memory_order_relaxed);
    if (noted_ticket == ticket && noted_reason == reason) return;
    noted_ticket = ticket;
    noted_reason = reason;
    Note(protocol::RecordedKind::kParked, static_cast<uint16_t>(reason), ticket, now);
  }
  /// Tells the recorded timeline. Thread: any.
  void Note(protocol::RecordedKind kind, uint16_t detail, Ticket ticket, uint64_t begin, uint64_t end = 0) noexcept {
    recorder_.Note({static_cast<uint16_t>(kind), detail, index_, ticket, begin, end});
  }

  /// Rings the owner once `ticket` is completed. Returns false if it is completed already; then no ring follows.
  /// Earlier calls for other tickets stay valid. Thread: owner.
  [[nodiscard]] bool ArmOwner(Ticket ticket) { return AddWaiter(ticket, true, nullptr, 0); }
  void SetOwner(std::shared_ptr<WakeTarget> owner);

  /// Calls `waker->WakeStream(stream)` once `ticket` is issued, or completed. Returns false if it is already; then no
  /// call follows. A second call with the same arguments adds nothing. A null `waker` stands for the owner. Thread: any
  /// channel.
  [[nodiscard]] bool AddWaiter(Ticket ticket, bool until_completed, std::shared_ptr<StreamWaker> waker,
                               uint32_t stream);
  /// Wakes all waiters, also for tickets that were not reached: the device is lost or closed.
  void WakeAll();

  /// The lowest ticket with a waiter for its completion; 0 without a waiter. Thread: any.
  [[nodiscard]] Ticket Wanted() const { return wanted_completed_.load(std::memory_order_seq_cst); }
  /// Whether somebody waits: such a waiter, or an owner that looks at the words itself. Thread: any.
  [[nodiscard]] bool IsAwaited() const {
    return Wanted() != 0 || std::atomic_ref(slot_.awaited).load(std::memory_order_relaxed) != 0;
  }
  /// Whether there is such a waiter for an issued record. The device does not know other records yet. Thread: any.
  [[nodiscard]] bool IsWantedOfDevice() const {
    const Ticket wanted = Wanted();
    return wanted != 0 && wanted <= Issued();
  }
  /// The number of waiters. For tests.
  [[nodiscard]] size_t WaiterCount();

  /// Releases the HOLD or EXTERNAL record with this ticket, issued or not. Thread: any.
  void ReleaseHold(Ticket ticket, bool has_failed = false);
  /// Whether the record with this ticket was released. Drops the release and all earlier ones. Thread: channel.
  [[nodiscard]] bool TakeRelease(Ticket ticket);
  /// Whether the record with this ticket was released, and then whether its function failed. Thread: channel.
  [[nodiscard]] std::optional<bool> ReleaseOf(Ticket ticket);
  /// The function of the EXTERNAL record with this ticket may be called: rings the owner. Thread: channel.
  void CallOwner(Ticket ticket);
  /// The last ticket of CallOwner; 0 before. Thread: any.
  [[nodiscard]] Ticket Called() const { return called_.load(std::memory_order_acquire); }

  /// Sets the driver's handle of the present stream; there is none before and after. Thread: any.
  void SetNativeHandle(uint64_t handle);
  [[nodiscard]] std::optional<uint64_t> NativeHandle();

 private:
  struct Waiter {
    Ticket ticket;
    bool until_completed;
    std::shared_ptr<StreamWaker> waker;  // Null for the owner.
    uint32_t stream;
  };
  void FireWaiters(bool completed, Ticket reached);
  void RefreshWanted();

  const uint32_t index_;
  protocol::TimelineSlot& slot_;
  KernelFailures& kernel_failures_;                            // The channel.
  Recorder& recorder_;                                         // The channel's.
  std::deque<std::pair<Ticket, std::shared_ptr<void>>> kept_;  // Thread: channel.
  alignas(64) std::atomic<Ticket> issued_{0};
  std::atomic<Ticket> called_{0};  // The last EXTERNAL record whose function may be called.
  // The lowest ticket of a waiter of each kind; 0 if there is none.
  std::atomic<Ticket> wanted_issued_{0};
  std::atomic<Ticket> wanted_completed_{0};

  std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<WakeTarget> owner_;
  std::vector<Waiter> waiters_;
  struct Release {
    Ticket ticket;
    bool has_failed;
  };
  std::vector<Release> released_;  // HOLD and EXTERNAL records that were released before they were issued.
  std::optional<uint64_t> native_handle_;
};

}  // namespace millrace
