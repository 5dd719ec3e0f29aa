// Who gives a device work, at any number, and who wants it to get none for a moment.
//
// Not a shared_mutex: a copy between two devices passes both of theirs, in either order. That is right here, because
// whoever has one alone waits for nobody else's.
#pragma once

#include <atomic>

namespace millrace::cuda {

/// For std::shared_lock, and std::unique_lock that only tries. Thread: any.
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

  std::atomic<int> state_{0};  // How many submit, or kAlone.
};

}  // namespace millrace::cuda
