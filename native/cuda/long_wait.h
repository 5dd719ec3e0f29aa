// Detects long waits for a stream, after which it is worth querying how far the stream has progressed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace millrace::cuda {

/// Thread: any. Two threads that ask about different tickets at once delay each other's result, without further harm.
class LongWait {
 public:
  /// Whether the incomplete `ticket` has been asked about for kWhile, since the first query or since this last returned
  /// true.
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

  /// Much longer than work that threads wait for without sleeping, much shorter than a person notices.
  static constexpr auto kWhile = std::chrono::milliseconds(5);

  std::atomic<uint64_t> ticket_{0};
  std::atomic<Clock::duration> since_{Clock::duration::zero()};
};

}  // namespace millrace::cuda
