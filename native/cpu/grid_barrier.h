// Where the blocks of a cooperative launch wait for each other. Blocks that have ended are not waited for.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace::cpu {

/// Thread: those of the blocks, each block on its own.
class GridBarrier {
 public:
  explicit GridBarrier(uint32_t blocks);

  /// Returns when every block that has not ended has come.
  void Wait();
  /// The calling block has ended.
  void Leave() { (void)Count(kOneLeft); }

 private:
  // How many have come since the barrier last opened, and above them how many have ended: one word, so that exactly one
  // block sees itself as the last.
  static constexpr uint64_t kOneArrived = 1;
  static constexpr uint64_t kOneLeft = uint64_t{1} << 32;

  [[nodiscard]] bool Count(uint64_t one);

  const uint32_t blocks_;
  const bool may_spin_;
  std::atomic<uint64_t> state_{0};
  std::atomic<uint32_t> turn_{0};  // Counts the times that the barrier opened.
};

}  // namespace millrace::cpu
