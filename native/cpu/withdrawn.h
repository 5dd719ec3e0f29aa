// Host memory that a device may not touch any more: its owner ends while work is queued that names it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace millrace::cpu {

class Withdrawn {
 public:
  /// Once: the device gets no work afterwards. Thread: any.
  void Set(std::vector<std::span<std::byte>> ranges) {
    if (is_asked_.exchange(true)) return;
    ranges_ = std::move(ranges);
    is_set_.store(true, std::memory_order_release);
  }
  /// Thread: any.
  [[nodiscard]] bool Has(const std::byte* start, uint64_t bytes) const {
    if (!is_set_.load(std::memory_order_acquire)) return false;
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
      return start < range.data() + range.size() && range.data() < start + bytes;
    });
  }

 private:
  std::atomic<bool> is_asked_{false};
  std::atomic<bool> is_set_{false};
  std::vector<std::span<std::byte>> ranges_;  // Before `is_set_`, nobody's but Set's.
};

}  // namespace millrace::cpu
