// What a backend tells of its streams while they work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "hal/status.h"
#include "protocol/protocol.gen.h"

namespace millrace::hal {

using Ticket = uint64_t;

/// Nanoseconds of the steady clock: the time of recorded timelines.
[[nodiscard]] inline uint64_t SteadyNow() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// KernelFailure::node of a launch that is not a graph's.
inline constexpr uint32_t kNoNode = UINT32_MAX;

/// A launch whose kernel had to stop.
struct KernelFailure {
  Status status;  // kLaunchFailed; kDeviceLost if the device may be corrupted.
  uint32_t kernel = 0;
  /// In a graph launch, the index of the node; of a node in a condition's body, the index of the outermost condition.
  uint32_t node = kNoNode;
  protocol::FaultSlot report{};
};

/// Receives the progress of streams. Thread: any. Must not block or call back into the stream's device.
class ProgressSink {
 public:
  ProgressSink() = default;
  explicit ProgressSink(const std::atomic<protocol::DeviceTimes>& times) : times_(&times) {}

  /// Whether a timeline is recorded: the backend then calls Ran for each ticket.
  [[nodiscard]] protocol::DeviceTimes WantedTimes() const noexcept { return times_->load(std::memory_order_relaxed); }
  [[nodiscard]] bool WantsTimes() const noexcept { return WantedTimes() != protocol::DeviceTimes::kNone; }
  /// When the device ran the ticket, in nanoseconds of the steady clock. `together`: as many tickets were timed
  /// together, and took equal parts of the time; 1 for an exact time.
  virtual void Ran(Ticket, uint64_t /*begin*/, uint64_t /*end*/, uint16_t /*together*/) noexcept {}
  virtual void Progress(Ticket completed) noexcept = 0;
  /// Called before `ticket` counts as completed.
  virtual void Failed(Ticket ticket, const KernelFailure& failure) noexcept = 0;

 protected:
  ~ProgressSink() = default;

 private:
  static constexpr std::atomic<protocol::DeviceTimes> kNever{protocol::DeviceTimes::kNone};
  const std::atomic<protocol::DeviceTimes>* times_ = &kNever;
};

}  // namespace millrace::hal
