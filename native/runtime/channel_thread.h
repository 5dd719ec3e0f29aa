// The thread of a channel: what it does in a turn, when it sleeps, and how it ends.
//
// It takes records out of the ring and what other threads left in the inbox, and has each record issued. A record that
// cannot be issued yet parks its stream: it and the stream's later records wait in the stream's own list. When the
// thread is asked to end, it waits for issued work, closes the device, and notifies the threads that wait for the
// close.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "runtime/channel_parts.h"
#include "runtime/issue/issuer.h"
#include "runtime/page_locks.h"
#include "runtime/remote/record_source.h"
#include "runtime/stream_state.h"

namespace millrace {

/// exit_mutex_ guards who waits for the end; everything else is the channel's thread's.
class ChannelThread {
 public:
  /// `source`: of an owner in another process; null without one.
  ChannelThread(const ChannelParts& parts, PageLocks& locks, protocol::Schedule schedule, remote::RecordSource* source);

  /// The thread's function. Returns when the device is closed.
  void Run();

  // ── Any thread. ──
  /// Calls `done` once when the thread ends, on that thread, or at once.
  void OnExit(std::function<void()> done);
  void AwaitExit();
  void AwaitExit(std::chrono::milliseconds deadline);

 private:
  using Clock = std::chrono::steady_clock;

  bool DrainNotices();
  void RunChanges();
  bool DrainRing();
  /// Whether a record comes before the device should write its words. Waits for it for some microseconds.
  bool IsGivenRecordSoon(bool is_event_last);
  /// Issues the stream's deferred records until one parks.
  void Proceed(StreamState& stream);
  bool IsDrained();
  /// Whether all that was submitted has been read.
  bool HasReadAll();
  bool HasWork();
  /// Stays awake for a while after work, then sleeps; while somebody waits for a device that has to be asked, in naps.
  void Idle(bool is_recent);
  /// True as soon as there is work.
  bool Spin();
  void CheckIfDue(Clock::time_point now);
  void AwaitEnds();
  bool HasBusyStream();
  void Finish();

  DeviceAccess& device_;
  StreamTable& streams_;
  ThreadInbox& inbox_;
  ResourceTables& tables_;
  Peers& peers_;
  DeviceLoss& loss_;
  SubmissionQueue& submissions_;
  FaultReports& faults_;
  OwnerCleanup& owners_;
  BlockingCallsThread& blocking_calls_;
  PageLocks& locks_;
  const protocol::Schedule schedule_;
  remote::RecordSource* const source_;
  Issuer issuer_;
  uint32_t unsignalled_ = 0;  // Records that were read since the device was last told to write its words.
  bool is_draining_ = false;  // The thread has read the request to stop.
  Clock::time_point idle_since_;
  Clock::time_point next_check_ = Clock::time_point::max();  // Of whether the device is still alive.

  std::mutex exit_mutex_;
  std::condition_variable exit_;
  // Guarded by exit_mutex_.
  bool has_exited_ = false;
  std::vector<std::function<void()>> exit_callbacks_;
};

}  // namespace millrace
