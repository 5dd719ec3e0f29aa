// A lock that any number of threads hold while they submit work to a device, and one exclusively while none may.
//
// Not a shared_mutex, because a copy between two devices locks both of theirs in any order. That cannot deadlock: a
// thread that holds one exclusively never waits for another.
#pragma once

#include <atomic>

namespace millrace::cuda {

/// For std::shared_lock, and for std::unique_lock with try_to_lock. Thread: any.
class Submissions {
 public:
  void lock_shared() {
    int seen = state_.load(std::memory_order_relaxed);
    while (true) {
      if (seen == kAlone) {
        state_.wait(kAlone, std::memory_order_relaxed);
        seen = state_.load(std::memory_order_relaxed);
      } else if (state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return;
      }
    }
  }
  void unlock_shared() { state_.fetch_sub(1, std::memory_order_release); }

  [[nodiscard]] bool try_lock() {
    int nobody = 0;
    return state_.compare_exchange_strong(nobody, kAlone, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() {
    state_.store(0, std::memory_order_release);
    state_.notify_all();
  }

 private:
  static constexpr int kAlone = -1;

  std::atomic<int> state_{0};  // Number of shared holders, or kAlone.
};

}  // namespace millrace::cuda
