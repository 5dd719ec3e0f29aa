// Wakes one sleeping thread and loses no wake.
//
// The ringing thread publishes its work and then reads `sleeping_`. The sleeping thread sets `sleeping_` and then looks
// for work again. Each has a full fence between its two steps, so at least one sees the other. Without the fences a few
// wakes in a million are lost.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace millrace {

class Bell {
 public:
  /// Thread: any. One load when nobody sleeps.
  void Ring() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_relaxed) != 0 && sleeping_.exchange(0, std::memory_order_acq_rel) != 0) {
      syscall(SYS_futex, &sleeping_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

  /// Sleeps until rung, unless `has_work()` returns true. A zero `timeout` means no limit.
  /// Thread: the one that owns the doorbell.
  template <typename HasWork>
  void Sleep(HasWork has_work, std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
    sleeping_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!has_work()) {
      timespec limit{static_cast<time_t>(timeout.count() / 1'000'000'000),
                     static_cast<long>(timeout.count() % 1'000'000'000)};
      // A spurious return is harmless: the owner looks for work and sleeps again.
      syscall(SYS_futex, &sleeping_, FUTEX_WAIT_PRIVATE, 1, timeout.count() > 0 ? &limit : nullptr, nullptr, 0);
    }
    sleeping_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> sleeping_{0};
};

}  // namespace millrace
