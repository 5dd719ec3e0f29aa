// Threads that share the work of a calling thread, for work that one core cannot do fast enough, such as copies of
// large ranges and the first touch of their pages.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "hal/thread.h"

namespace millrace {

/// The threads start with the first call and sleep between calls. The object outlives its calls.
class HelperThreads {
 public:
  /// `name`: of the threads, at most 15 characters.
  HelperThreads(const char* name, unsigned count) : name_(name), count_(count) {}
  ~HelperThreads() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      changed_.notify_all();
    }
    for (Thread& thread : threads_) thread.Join();
  }

  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  /// The most helpers that join a call.
  [[nodiscard]] unsigned count() const { return count_; }

  /// Calls `body(0)` on this thread and `body(n)` on the n-th helper, for each that wakes before this thread has
  /// finished, and returns when all have returned. So `body` takes pieces of the work until none is left. If the system
  /// refuses threads, fewer help. Calls of several threads run one after another. Thread: any. Blocks.
  void Run(const std::function<void(unsigned)>& body) {
    const std::lock_guard call_lock(call_mutex_);
    {
      const std::lock_guard lock(mutex_);
      StartThreads();
      body_ = &body;
      ++generation_;
      changed_.notify_all();
    }
    body(0);
    std::unique_lock lock(mutex_);
    body_ = nullptr;
    changed_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  /// Needs mutex_.
  void StartThreads() {
    while (threads_.size() < count_) {
      Thread thread;
      const unsigned n = static_cast<unsigned>(threads_.size()) + 1;
      if (!thread.Start(name_, [this, n] { Help(n); }).ok()) return;
      threads_.push_back(std::move(thread));
    }
  }

  void Help(unsigned n) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_ending_ || (body_ != nullptr && generation_ != seen); });
      if (is_ending_) return;
      seen = generation_;
      const std::function<void(unsigned)>& body = *body_;
      ++busy_;
      lock.unlock();
      body(n);
      lock.lock();
      if (--busy_ == 0) changed_.notify_all();
    }
  }

  const char* const name_;
  const unsigned count_;
  std::mutex call_mutex_;  // Held by the running call.

  std::mutex mutex_;  // Guards the fields below.
  std::condition_variable changed_;
  std::vector<Thread> threads_;
  const std::function<void(unsigned)>* body_ = nullptr;  // Of the call that helpers may join.
  uint64_t generation_ = 0;                              // The number of that call, so that no helper joins it twice.
  unsigned busy_ = 0;                                    // Helpers in the call.
  bool is_ending_ = false;
};

}  // namespace millrace
