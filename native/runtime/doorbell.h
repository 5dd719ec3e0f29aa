// Wakes one sleeping thread without ever losing a wake.
//
// The ringer publishes what it has, then reads `sleeping_`; the sleeper sets `sleeping_`, then looks again at what was
// published. A full fence stands between each pair, so at least one of the two sees the other. Without it a few wakes
// in a million are lost.
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

  /// Sleeps until rung, unless `has_work()` says that there is something already. A zero `timeout` means forever.
  /// Thread: the one that owns the bell.
  template <typename HasWork>
  void Sleep(HasWork has_work, std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
    sleeping_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!has_work()) {
      timespec limit{static_cast<time_t>(timeout.count() / 1'000'000'000),
                     static_cast<long>(timeout.count() % 1'000'000'000)};
      // A spurious return is harmless: the owner looks at its work and sleeps again.
      syscall(SYS_futex, &sleeping_, FUTEX_WAIT_PRIVATE, 1, timeout.count() > 0 ? &limit : nullptr, nullptr, 0);
    }
    sleeping_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> sleeping_{0};
};

}  // namespace millrace
