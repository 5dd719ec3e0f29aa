#include "runtime/thread_inbox.h"

#include <condition_variable>
#include <utility>

namespace millrace {

void ThreadInbox::Wake(StreamState& stream) noexcept {
  if (stream.is_notified.exchange(true)) return;
  {
    std::lock_guard lock(mutex_);
    wakes_.push_back(&stream);
  }
  has_notices_.store(true, std::memory_order_release);
  bell_.Ring();
}

bool ThreadInbox::Post(std::function<void()> change) {
  {
    std::lock_guard lock(mutex_);
    if (is_ended_) return false;
    changes_.push_back(std::move(change));
  }
  has_notices_.store(true, std::memory_order_release);
  bell_.Ring();
  return true;
}

void ThreadInbox::RunOnThread(const std::function<void()>& change) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  const bool is_posted = Post([&] {
    change();
    // Notified under the lock: the waiter's locals are gone as soon as it sees `is_done`.
    std::lock_guard lock(mutex);
    is_done = true;
    changed.notify_one();
  });
  if (!is_posted) return;
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_done; });
}

void ThreadInbox::Hold(bool on) {
  is_held_.store(on, std::memory_order_seq_cst);
  bell_.Ring();
}

void ThreadInbox::StopWhenDrained() {
  stop_when_drained_.store(true, std::memory_order_seq_cst);
  Hold(false);
}

void ThreadInbox::Abandon() {
  is_abandoned_.store(true, std::memory_order_seq_cst);
  bell_.Ring();
}

ThreadInbox::Notices ThreadInbox::TakeAll() {
  Notices taken;
  std::lock_guard lock(mutex_);
  has_notices_.store(false, std::memory_order_relaxed);
  taken.wakes.swap(wakes_);
  taken.changes.swap(changes_);
  return taken;
}

ThreadInbox::Changes ThreadInbox::TakeChanges() {
  std::lock_guard lock(mutex_);
  has_notices_.store(false, std::memory_order_relaxed);
  return std::exchange(changes_, {});
}

ThreadInbox::Changes ThreadInbox::TakeLastChanges() {
  std::lock_guard lock(mutex_);
  is_ended_ = true;
  return std::exchange(changes_, {});
}

}  // namespace millrace
