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
    if (sleeping_.load(std::memory_order_relaxed) != 0 && sleeping_.exchange(0, std::memory_order_acq_rel) != 0) Wake();
  }

  /// From now on another process can ring, too: by this word, as remote::RingIfSleeping does. Before the first Sleep.
  void Share(std::atomic<uint32_t>& word) { shared_ = &word; }

  /// Sleeps until rung, unless `has_work()` returns true. A zero `timeout` means no limit.
  /// Thread: the one that owns the doorbell.
  template <typename HasWork>
  void Sleep(HasWork has_work, std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
    sleeping_.store(1, std::memory_order_relaxed);
    if (shared_ != nullptr) shared_->store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!has_work()) {
      timespec limit{static_cast<time_t>(timeout.count() / 1'000'000'000),
                     static_cast<long>(timeout.count() % 1'000'000'000)};
      // A spurious return is harmless: the owner looks for work and sleeps again.
      Syscall(shared_ == nullptr ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, timeout.count() > 0 ? &limit : nullptr);
    }
    sleeping_.store(0, std::memory_order_relaxed);
    if (shared_ != nullptr) shared_->store(0, std::memory_order_relaxed);
  }

 private:
  [[gnu::noinline]] void Wake() noexcept {
    if (shared_ != nullptr) shared_->store(0, std::memory_order_release);
    Syscall(shared_ == nullptr ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, nullptr);
  }
  /// On the word that the thread sleeps on.
  void Syscall(int what, const timespec* limit) noexcept {
    syscall(SYS_futex, shared_ == nullptr ? &sleeping_ : shared_, what, 1, limit, nullptr, 0);
  }

  std::atomic<uint32_t> sleeping_{0};
  std::atomic<uint32_t>* shared_ = nullptr;  // The thread sleeps on this word, if there is one.
};

}  // namespace millrace
