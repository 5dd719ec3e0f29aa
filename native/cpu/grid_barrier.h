// The grid barrier of cooperative launches. It does not wait for blocks that have ended.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace::cpu {

/// Thread: each block's own.
class GridBarrier {
 public:
  explicit GridBarrier(uint32_t blocks);

  /// Before another launch, when every block has ended.
  void Prepare() { state_.store(0, std::memory_order_relaxed); }
  /// Returns when every block that has not ended has arrived.
  void Wait();
  /// The calling block has ended.
  void Leave() { (void)Count(kOneLeft); }

 private:
  // The low half counts blocks that arrived since the barrier last opened, the high half blocks that ended. A single
  // word, so that exactly one block is the last.
  static constexpr uint64_t kOneArrived = 1;
  static constexpr uint64_t kOneLeft = uint64_t{1} << 32;

  [[nodiscard]] bool Count(uint64_t one);

  const uint32_t blocks_;
  const bool may_spin_;
  std::atomic<uint64_t> state_{0};
  std::atomic<uint32_t> turn_{0};  // Number of times the barrier has opened.
};

}  // namespace millrace::cpu
