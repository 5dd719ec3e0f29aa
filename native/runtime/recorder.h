// What a recorded timeline tells of a channel: when each record was submitted, parked, issued and run. Off until it is
// started; then whoever knows such a time notes it here, for each owner that records, and owners take what was noted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "protocol/protocol.gen.h"

namespace millrace {

/// Thread: any. mutex_ guards the lists.
class Recorder {
 public:
  Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Every place that would note something asks this first, so that a channel that nobody records pays one load. Also
  /// set while a tool gets the names of records, for the same reason.
  [[nodiscard]] bool IsOn() const { return is_on_.load(std::memory_order_relaxed); }
  /// Whether backends are to tell when each record ran.
  [[nodiscard]] const std::atomic<protocol::DeviceTimes>& device_times() const { return device_times_; }

  /// From now on keeps the newest facts for the owner, at most so many, between two of its calls of Take. If it records
  /// already, changes that.
  void Start(uint32_t owner, size_t most, protocol::DeviceTimes times);
  void Stop(uint32_t owner);
  void Note(const protocol::RecordedTime& time) noexcept;
  /// A record with a valid header was submitted at `now`, with this ticket.
  void NoteSubmitted(std::span<const std::byte> record, uint64_t ticket, uint64_t now) noexcept;

  struct Taken {
    size_t count = 0;
    uint64_t dropped = 0;  // Facts that had no room, since the last call.
  };
  /// Moves the oldest facts of the owner into `into`.
  [[nodiscard]] Taken Take(uint32_t owner, std::span<protocol::RecordedTime> into);

 private:
  struct List {
    uint32_t owner = 0;
    size_t most = 0;
    protocol::DeviceTimes device_times{};
    std::vector<protocol::RecordedTime> times;  // From `first` on.
    size_t first = 0;
    uint64_t dropped = 0;
  };
  [[nodiscard]] List* Find(uint32_t owner);
  void Tell();

  std::atomic<bool> is_on_;
  std::atomic<protocol::DeviceTimes> device_times_{protocol::DeviceTimes::kNone};
  std::mutex mutex_;
  std::vector<List> lists_;
};

}  // namespace millrace
