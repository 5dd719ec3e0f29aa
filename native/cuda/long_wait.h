// When whoever asks about a stream has waited so long that it is worth finding out how far the stream came meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace millrace::cuda {

/// Thread: any. Two who ask at once about different tickets put each other off, and lose nothing but time.
class LongWait {
 public:
  /// Whether `ticket`, which is not complete, has been asked about for a while, since the first question or the last
  /// time that this was true.
  bool IsOver(uint64_t ticket) {
    const Clock::duration now = Clock::now().time_since_epoch();
    if (ticket_.exchange(ticket, std::memory_order_relaxed) == ticket) {
      if (now - since_.load(std::memory_order_relaxed) < kWhile) return false;
      since_.store(now, std::memory_order_relaxed);
      return true;
    }
    since_.store(now, std::memory_order_relaxed);
    return false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Far longer than the work whose end is waited for without sleeping, far shorter than a person notices.
  static constexpr auto kWhile = std::chrono::milliseconds(5);

  std::atomic<uint64_t> ticket_{0};
  std::atomic<Clock::duration> since_{Clock::duration::zero()};
};

}  // namespace millrace::cuda
