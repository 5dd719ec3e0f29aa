// The clock of a device beside the host's: when, in the host's time, an event was reached.
//
// A GPU's clock and the host's drift by some ten microseconds a second, and the driver tells the time between two
// events in a float. So a mark, an event whose time on the host is known, is made every second, and times count from
// the mark before them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "cuda/event_handle.h"

namespace millrace::cuda {

/// mutex_ guards everything but asked_.
class DeviceClock {
 public:
  explicit DeviceClock(std::shared_ptr<TimedEvents> events) : events_(std::move(events)) {}
  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  [[nodiscard]] TimedEvents& events() const { return *events_; }
  /// Makes a mark. Thread: control, or channel. Blocks for some microseconds.
  Status Align();
  [[nodiscard]] bool HasMark();
  /// When a stream was given an event of this clock last, in nanoseconds of the steady clock. Thread: any.
  [[nodiscard]] uint64_t asked() const { return asked_.load(std::memory_order_relaxed); }
  void NoteAsked(uint64_t now) { asked_.store(now, std::memory_order_relaxed); }
  /// When a stream reached an event, in nanoseconds of the steady clock; nothing if it has not, or before the first
  /// mark. With the context current. Thread: any.
  [[nodiscard]] std::optional<uint64_t> TimeOf(CUevent event);

 private:
  /// The best of a few tries is kept: a try is as exact as it was quick.
  static constexpr int kTries = 5;
  /// A kernel may have begun so many seconds ago and still be timed from a mark before it.
  static constexpr size_t kMarks = 8;
  struct Mark {
    CUevent event = nullptr;
    uint64_t host = 0;
  };

  const std::shared_ptr<TimedEvents> events_;
  std::atomic<uint64_t> asked_{0};
  std::mutex mutex_;
  CUstream stream_ = nullptr;
  std::array<Mark, kMarks> marks_ = {};  // A ring.
  uint64_t made_ = 0;
};

}  // namespace millrace::cuda
