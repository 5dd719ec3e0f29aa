// One timeline slot of a channel: the stream that has it now, how far it is submitted, issued and completed, why it is
// parked, and who waits for it.
//
// A StreamState lives as long as its channel and serves one stream after another; tickets go on counting, so that a
// point of an earlier stream stays completed for ever.
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
#include "runtime/failures.h"
#include "runtime/faults.h"
#include "runtime/pump.h"
#include "runtime/waiting_streams.h"

namespace millrace {

using hal::Ticket;

/// Somebody on a JavaScript thread who can be woken. Thread: any.
class WakeTarget {
 public:
  virtual ~WakeTarget() = default;
  virtual void Ring() noexcept = 0;
};

enum class ParkReason : uint8_t {
  kNone,    // Running.
  kPoint,   // The point it waits for was not issued yet, or memory it names was not allocated yet.
  kBuild,   // A kernel is not built yet.
  kPin,     // Host memory is not registered yet.
  kWindow,  // Too many records of it are in flight.
  kMemory,  // Out of memory while frees are pending.
  kDrain,   // It is being destroyed and drains first.
  kHold,    // Its owner runs something meanwhile.
  kPeer,    // The route between two devices was not tried yet, or has no staging memory.
  kPump,    // Bytes of host memory that is not page-locked are on their way.
};
[[nodiscard]] const char* ParkReasonName(ParkReason reason);

class StreamState;

/// Whose streams they are. Thread: any.
class KernelFailures {
 public:
  virtual void KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failure) noexcept = 0;

 protected:
  ~KernelFailures() = default;
};

class StreamState final : public hal::ProgressSink {
 public:
  StreamState(uint32_t index, protocol::TimelineSlot& slot, KernelFailures& kernel_failures)
      : index_(index), slot_(slot), kernel_failures_(kernel_failures) {}

  [[nodiscard]] uint32_t index() const { return index_; }
  [[nodiscard]] protocol::TimelineSlot& slot() { return slot_; }

  // Each section stands on cache lines of its own: in a burst one thread submits while another issues.

  // ── Submission. Guarded by the ring's producer mutex. ──
  Ticket last_ticket = 0;
  bool is_reserved = false;

  // ── Channel thread only. ──
  alignas(64) std::unique_ptr<hal::Stream> backend;
  Ticket accepted = 0;              // Issued, and not merely dropped because the device was lost or given up.
  bool is_dirty = false;            // Issued since the last Signal.
  uint32_t poisoned_by = 0;         // It waited for a lost device: the failure that every later record repeats.
  uint32_t doomed_device = 0;       // The channel of that device.
  std::vector<std::byte> deferred;  // Whole records, in order, from `deferred_at` on.
  size_t deferred_at = 0;
  uint32_t deferred_frees = 0;           // Of them, those that free memory.
  std::shared_ptr<PumpedRecord> pumped;  // What the pump does for the first deferred record, if anything.
  [[nodiscard]] bool HasDeferred() const { return deferred_at < deferred.size(); }
  void Defer(std::span<const std::byte> record);
  /// The first deferred record, which begins with a whole header.
  [[nodiscard]] std::span<const std::byte> FirstDeferred() const { return std::span(deferred).subspan(deferred_at); }
  [[nodiscard]] protocol::Opcode FirstDeferredOpcode() const { return OpcodeOf(FirstDeferred()); }
  /// The first deferred record, of so many bytes, was issued.
  void DropDeferred(size_t bytes);
  /// Keeps `object` until the ticket completed.
  void Keep(Ticket ticket, std::shared_ptr<void> object);
  /// The backend's stream ended; so does what belonged to it.
  void Forget();

  // ── Any thread. ──
  alignas(64) FailureLog failures;
  FaultWatch faults;
  std::atomic<ParkReason> park{ParkReason::kNone};  // Written by the channel, read by whoever asks what is going on.
  std::atomic<bool> is_watched{false};              // On the watcher's list.
  std::atomic<bool> is_pumping{false};              // The pump has something of it to do, or does it.
  std::atomic<bool> is_notified{false};             // On its channel's list of streams to go on with.

  [[nodiscard]] Ticket Issued() const { return issued_.load(std::memory_order_seq_cst); }
  [[nodiscard]] Ticket Completed() const {
    return std::max(std::atomic_ref(slot_.device_word).load(std::memory_order_acquire),
                    std::atomic_ref(slot_.host_word).load(std::memory_order_acquire));
  }
  /// Thread: channel. Lets go of whoever waited for this record to be issued.
  void MarkIssued(Ticket ticket);
  /// Completes tickets without a backend. Thread: channel.
  void CompleteOnHost(Ticket ticket);
  /// hal::ProgressSink: wakes the owner and the channels that wait for no more than `completed`.
  void Progress(Ticket completed) noexcept override;
  void Failed(Ticket ticket, const hal::KernelFailure& failure) noexcept override {
    kernel_failures_.KernelFailed(*this, ticket, failure);
  }

  /// Rings the owner once `ticket` is completed; false when it already is, and then nothing is asked for. Earlier
  /// calls for other tickets stay in force. Thread: owner.
  [[nodiscard]] bool ArmOwner(Ticket ticket) { return AddWaiter(ticket, true, nullptr, 0); }
  void SetOwner(std::shared_ptr<WakeTarget> owner);

  /// Calls `waker->WakeStream(stream)` once `ticket` is issued, or completed; false when it already is, and then
  /// nothing is asked for. A second call for the same adds nothing. A null `waker` stands for the owner. Thread: any
  /// channel.
  [[nodiscard]] bool AddWaiter(Ticket ticket, bool until_completed, std::shared_ptr<StreamWaker> waker,
                               uint32_t stream);
  /// Wakes everybody, reached or not: the device is lost or closed.
  void WakeAll();

  /// The ticket that somebody wants completed, 0 when nobody waits. Thread: any.
  [[nodiscard]] Ticket Wanted() const { return wanted_completed_.load(std::memory_order_seq_cst); }
  /// As Wanted(), of what can be waited for: a record that is not issued yet depends on no device. Thread: any.
  [[nodiscard]] bool IsWantedOfDevice() const {
    const Ticket wanted = Wanted();
    return wanted != 0 && wanted <= Issued();
  }
  /// How many wait. For tests.
  [[nodiscard]] size_t WaiterCount();

  /// The owner lets the HOLD record with this ticket go, issued or not. Thread: any.
  void ReleaseHold(Ticket ticket);
  /// Whether the record with this ticket was let go. Forgets it, and what stood before it. Thread: channel.
  [[nodiscard]] bool TakeRelease(Ticket ticket);

  /// The driver's handle while there is a stream; nothing before and after. Set by the channel. Thread: any.
  void SetNativeHandle(uint64_t handle);
  [[nodiscard]] std::optional<uint64_t> NativeHandle();

 private:
  static protocol::Opcode OpcodeOf(std::span<const std::byte> record);
  struct Waiter {
    Ticket ticket;
    bool until_completed;
    std::shared_ptr<StreamWaker> waker;  // Null: the owner.
    uint32_t stream;
  };
  void FireWaiters(bool completed, Ticket reached);
  void RefreshWanted();

  const uint32_t index_;
  protocol::TimelineSlot& slot_;
  KernelFailures& kernel_failures_;                            // Has the stream.
  std::deque<std::pair<Ticket, std::shared_ptr<void>>> kept_;  // Thread: channel.
  alignas(64) std::atomic<Ticket> issued_{0};
  // Lowest ticket of a waiter of each kind, 0 when there is none.
  std::atomic<Ticket> wanted_issued_{0};
  std::atomic<Ticket> wanted_completed_{0};

  std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<WakeTarget> owner_;
  std::vector<Waiter> waiters_;
  std::vector<Ticket> released_;  // Of HOLD records that were let go and not issued.
  std::optional<uint64_t> native_handle_;
};

}  // namespace millrace
