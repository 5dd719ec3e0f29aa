// How an item of a stream learns that its device was given up.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace::cpu {

/// An item's place in its stream, and the last one that is still to run. Thread: any.
struct Stop {
  /// The stream's: above every ticket until the device is given up, and from then on only lowered. Null: never.
  const std::atomic<uint64_t>* last_kept = nullptr;
  uint64_t ticket = 0;

  [[nodiscard]] bool IsAsked() const {
    return last_kept != nullptr && ticket > last_kept->load(std::memory_order_relaxed);
  }
};

}  // namespace millrace::cpu
