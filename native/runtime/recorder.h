// What a recorded timeline tells of a channel: when each record was submitted, parked, issued and run. Off until it is
// started; then whoever knows such a time notes it here, and an owner takes what was noted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "protocol/protocol.gen.h"

namespace millrace {

/// Thread: any. mutex_ guards the list.
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Every place that would note something asks this first, so that a channel that nobody records pays one load.
  [[nodiscard]] bool IsOn() const { return is_on_.load(std::memory_order_relaxed); }
  /// Whether backends are to tell when each record ran.
  [[nodiscard]] const std::atomic<bool>& wants_times() const { return wants_times_; }

  /// Keeps the newest facts, at most so many, between two calls of Take. False if it is on already.
  [[nodiscard]] bool Start(size_t most, bool wants_times);
  void Stop();
  void Note(const protocol::RecordedTime& time) noexcept;

  struct Taken {
    size_t count = 0;
    uint64_t dropped = 0;  // Facts that had no room, since the last call.
  };
  /// Moves the oldest facts into `into`.
  [[nodiscard]] Taken Take(std::span<protocol::RecordedTime> into);

 private:
  std::atomic<bool> is_on_{false};
  std::atomic<bool> wants_times_{false};
  std::mutex mutex_;
  std::vector<protocol::RecordedTime> times_;  // From `first_` on.
  size_t first_ = 0;
  size_t most_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace millrace
