// Leases of host memory: they tell a queued or running copy whether the memory's owner has withdrawn it.
#pragma once

#include <atomic>
#include <memory>

#include "protocol/protocol.gen.h"

namespace millrace::hal {

/// Whether registered host memory may still be accessed. Its owner thread may end, and its memory with it, while queued
/// work refers to it. Thread: any.
class HostLease {
 public:
  /// Permanent.
  void Withdraw() { is_withdrawn_.store(true, std::memory_order_release); }
  [[nodiscard]] bool IsWithdrawn() const { return is_withdrawn_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_withdrawn_{false};
};

/// The leases of a copy's source and destination, where these are host memory. A copy that has not begun skips
/// withdrawn memory; a running copy skips the rest. Page-locked memory stays valid for the driver, so only devices that
/// access host memory directly check this.
struct HostLeases {
  std::shared_ptr<const HostLease> dst;  // Null: device memory.
  std::shared_ptr<const HostLease> src;
  /// Receives the report of a skipped copy, as in rule 8; null if no report is needed.
  protocol::FaultSlot* report = nullptr;
  /// The device's `fault` word, if there is a report.
  uint32_t* fault_word = nullptr;

  [[nodiscard]] bool HasAny() const { return dst != nullptr || src != nullptr; }
  [[nodiscard]] bool IsWithdrawn() const {
    return (dst != nullptr && dst->IsWithdrawn()) || (src != nullptr && src->IsWithdrawn());
  }
};

}  // namespace millrace::hal
