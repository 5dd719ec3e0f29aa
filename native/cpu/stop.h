// Tells an item of a stream that its device was cancelled.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace::cpu {

/// An item's ticket, and the stream's last ticket that still runs. Thread: any.
struct Stop {
  /// The stream's; above every ticket until the device is cancelled, then only lowered. Null: never stops.
  const std::atomic<uint64_t>* last_kept = nullptr;
  uint64_t ticket = 0;

  [[nodiscard]] bool IsAsked() const {
    return last_kept != nullptr && ticket > last_kept->load(std::memory_order_relaxed);
  }
};

}  // namespace millrace::cpu
