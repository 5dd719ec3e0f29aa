// What other threads leave for a channel's thread: streams to continue, changes of the tables, and the requests to hold
// and to stop. Each thread rings the bell after it has left something.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include "runtime/doorbell.h"
#include "runtime/stream_state.h"

namespace millrace {

/// mutex_ guards the lists; the flags are atomics. Thread: any, unless a section names one.
class ThreadInbox {
 public:
  // ── Any thread. ──
  /// The thread looks at the stream again.
  void Wake(StreamState& stream) noexcept;
  /// The thread runs `change`. False once it has ended: there is nothing left to change.
  bool Post(std::function<void()> change);
  /// Post, and waits for the end of `change`. Thread: any but the channel's.
  void RunOnThread(const std::function<void()>& change);
  void Ring() noexcept { bell_.Ring(); }
  /// As Bell::Share.
  void ShareBell(std::atomic<uint32_t>& word) { bell_.Share(word); }
  /// Somebody began to wait for a device that has to be asked.
  void Ask() noexcept {
    is_asked_.store(true, std::memory_order_seq_cst);
    bell_.Ring();
  }
  /// While it is on, no record is read.
  void Hold(bool on);
  /// The thread runs what is queued, and ends. Also ends a hold.
  void StopWhenDrained();
  /// The thread drops what is queued, and ends.
  void Abandon();
  [[nodiscard]] bool HasNotices() const { return has_notices_.load(std::memory_order_acquire); }
  [[nodiscard]] bool IsHeld() const { return is_held_.load(std::memory_order_acquire); }
  [[nodiscard]] bool IsStopping() const { return stop_when_drained_.load(std::memory_order_acquire); }
  [[nodiscard]] bool IsAbandoned() const { return is_abandoned_.load(std::memory_order_acquire); }

  // ── The channel's thread. ──
  using Changes = std::vector<std::function<void()>>;
  struct Notices {
    std::vector<StreamState*> wakes;
    Changes changes;
  };
  /// Everything that was left.
  Notices TakeAll();
  /// The changes; wakes stay.
  Changes TakeChanges();
  /// The changes that came last: Post refuses all later ones.
  Changes TakeLastChanges();
  /// From here on, IsAsked tells whether somebody asked.
  void BeginListening() { is_asked_.store(false, std::memory_order_seq_cst); }
  [[nodiscard]] bool IsAsked() const { return is_asked_.load(std::memory_order_seq_cst); }
  /// Sleeps until rung, unless `has_work()` returns true. A zero `timeout` means no limit.
  template <typename HasWork>
  void Sleep(HasWork has_work, std::chrono::nanoseconds timeout) {
    bell_.Sleep(has_work, timeout);
  }

 private:
  alignas(64) Bell bell_;
  std::atomic<bool> has_notices_{false};
  std::atomic<bool> is_asked_{false};
  std::atomic<bool> is_held_{false};
  std::atomic<bool> stop_when_drained_{false};
  std::atomic<bool> is_abandoned_{false};
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<StreamState*> wakes_;
  Changes changes_;
  bool is_ended_ = false;  // The thread runs no more changes.
};

}  // namespace millrace
