// Timestamps of a CPU device.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "hal/hal.h"

namespace millrace::cpu {

/// The time at which a stream reached an event. Thread: any.
class Timestamp {
 public:
  void Take() { nanoseconds_.store(Now(), std::memory_order_release); }
  [[nodiscard]] bool IsTaken() const { return nanoseconds_.load(std::memory_order_acquire) != kNever; }
  [[nodiscard]] int64_t nanoseconds() const { return nanoseconds_.load(std::memory_order_acquire); }

 private:
  static constexpr int64_t kNever = INT64_MIN;
  static int64_t Now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }

  std::atomic<int64_t> nanoseconds_{kNever};
};

/// The stream that records it also holds the timestamp, so the event may be destroyed first.
class CpuEventHandle final : public hal::EventHandle {
 public:
  [[nodiscard]] const std::shared_ptr<Timestamp>& stamp() const { return stamp_; }

 private:
  const std::shared_ptr<Timestamp> stamp_ = std::make_shared<Timestamp>();
};

}  // namespace millrace::cpu
