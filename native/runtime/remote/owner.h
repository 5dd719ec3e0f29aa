// The owner's side of a device in another process: what Channel is for a device of this process. Records and what must
// keep its place between them go through a queue in shared memory; what is rare is a call that waits for its answer.
//
// The other process may end at any moment, and may have written anything before. Then calls return what a closed device
// returns, and the owner learns of the end from its event loop.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/channel_stats.h"
#include "runtime/failures.h"
#include "runtime/recorder.h"
#include "runtime/remote/shared_block.h"
#include "runtime/submission_queue.h"

namespace millrace::remote {

/// Thread: the owner's, unless a function says otherwise.
class Owner {
 public:
  /// `memory` keeps the block and the timeline. `process`: of the device.
  Owner(SharedBlock& block, std::span<protocol::TimelineSlot> timeline, std::shared_ptr<const void> memory,
        uint32_t max_pending);
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  /// The process of the device, a child of this one.
  void Name(pid_t process) { process_ = process; }
  /// Rings whenever the device's process does, on a thread of its own, until Stop. With a timeout, also ends that
  /// process when it stands still for so long, and a second at least: its own watchdog has not run either.
  static Status Watch(const std::shared_ptr<Owner>& owner, std::shared_ptr<WakeTarget> target,
                      std::chrono::milliseconds timeout);
  void Stop();

  /// Waits for the end of the process, on a thread of its own: the event loop that would have done so ends. Otherwise
  /// it stays a zombie for as long as this process lives.
  void ReapLater() const;

  // As the functions of Channel.
  Submission Submit(std::span<const std::byte> bytes);
  int64_t ReserveStream();
  uint32_t ReserveHandles(protocol::HandleKind kind, uint32_t count);
  FailureId ReserveFailure();
  [[nodiscard]] Ticket LastTicket(uint32_t stream) const;
  [[nodiscard]] std::vector<SubmissionQueue::Point> PendingPoints() const;
  bool Arm(uint32_t stream, Ticket ticket);
  FailureLog::Part Failures(uint32_t stream, uint32_t from, uint32_t count);
  void Reported(uint32_t stream, Ticket through) { Send(EntryKind::kReported, Point{stream, through}); }
  void ReportedOf(uint32_t handle, uint64_t offset, uint64_t bytes) {
    Send(EntryKind::kReportedOf, HostBytes{handle, offset, bytes});
  }
  /// kState once the process has not answered, has not read what it was sent, or stands still: it has ended, or it
  /// hangs.
  [[nodiscard]] StatusCode LostStatus() const {
    return is_silent_.load(std::memory_order_relaxed)
               ? StatusCode::kState
               : static_cast<StatusCode>(block_.lost.load(std::memory_order_acquire));
  }
  struct End {
    int code;
    int signal;  // 0: it exited by itself.
  };
  /// How the process has ended, while nobody has waited for it.
  [[nodiscard]] std::optional<End> Ended() const;
  [[nodiscard]] int32_t LostDriverCode() const { return block_.lost_driver_code.load(std::memory_order_relaxed); }
  /// Which stream's work did not end in time, so that the process ended itself; kNoStream for the channel's thread.
  [[nodiscard]] std::optional<uint32_t> Hung() const {
    const uint32_t hung = block_.hung.load(std::memory_order_acquire);
    return hung == 0 ? std::nullopt : std::optional(hung - 1);
  }
  std::optional<ChannelStats> Stats();
  std::vector<uint32_t> BusyStreams();
  void ReleaseHold(uint32_t stream, Ticket ticket) { Send(EntryKind::kReleaseHold, Point{stream, ticket}); }
  void FailExternal(uint32_t stream, Ticket ticket) { Send(EntryKind::kFailExternal, Point{stream, ticket}); }
  void DefineGraph(uint32_t handle, std::span<const std::byte> definition);
  void Hold(bool on);
  void StartRecording(size_t most, protocol::DeviceTimes times);
  void StopRecording();
  Recorder::Taken TakeTimes(std::span<protocol::RecordedTime> into);

 private:
  struct Stream {
    Ticket last = 0;
    bool is_open = false;  // Reserved, and not ending.
  };

  [[nodiscard]] bool IsFull();
  /// Whether the process has ended.
  [[nodiscard]] bool HasEnded() const;
  template <typename T>
  void Send(EntryKind kind, const T& body) {
    Write(kind, std::as_bytes(std::span(&body, 1)));
    RingIfSleeping(block_.sleeping);
  }
  /// Appends an entry. Waits for room; false if the process has ended or takes nothing.
  bool Write(EntryKind kind, std::span<const std::byte> body);
  bool AwaitRoom(uint64_t bytes);
  /// Sends `words` and what is in the call's data, and waits for the answer, which `words` gets. False without one.
  bool Call(CallKind kind, std::span<uint64_t> words, uint64_t bytes = 0);
  bool HasAnswer();
  /// What the answer's data are.
  template <typename T>
  std::vector<T> Answered(size_t most) const;
  [[nodiscard]] Ticket Completed(uint32_t stream) const;

  SharedBlock& block_;
  const std::span<protocol::TimelineSlot> timeline_;
  const std::shared_ptr<const void> memory_;
  const uint32_t max_pending_;
  pid_t process_ = 0;
  uint64_t written_ = 0;
  uint64_t known_read_ = 0;
  uint64_t submitted_ = 0;
  uint64_t submitted_bytes_ = 0;
  uint64_t known_retired_ = 0;
  uint64_t known_retired_bytes_ = 0;
  std::vector<Stream> streams_;
  std::atomic<bool> is_silent_{false};
  std::atomic<bool> is_stopped_{false};
};

}  // namespace millrace::remote
