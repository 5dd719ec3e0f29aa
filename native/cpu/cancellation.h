// Tells a running item of a stream that its device was cancelled (hal::Device::Cancel) and that it should stop.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace::cpu {

/// Whether an item must stop: its ticket, compared with the last ticket of its stream that still runs. Thread: any.
struct Cancellation {
  /// A field of the stream: above every ticket until the device is cancelled, then only lowered. Null: never cancelled.
  const std::atomic<uint64_t>* last_kept = nullptr;
  uint64_t ticket = 0;

  [[nodiscard]] bool IsRequested() const {
    return last_kept != nullptr && ticket > last_kept->load(std::memory_order_relaxed);
  }
};

}  // namespace millrace::cpu
