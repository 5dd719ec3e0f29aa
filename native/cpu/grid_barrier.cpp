#include "cpu/grid_barrier.h"

namespace millrace::cpu {

void GridBarrier::Wait() {
  // It cannot open before this block has come.
  const uint32_t turn = turn_.load(std::memory_order_relaxed);
  if (!Count(kOneArrived)) turn_.wait(turn, std::memory_order_acquire);
}

// True for the block that all others were waiting for: it opened the barrier.
bool GridBarrier::Count(uint64_t one) {
  const uint64_t state = state_.fetch_add(one, std::memory_order_acq_rel) + one;
  const auto arrived = static_cast<uint32_t>(state);
  const auto left = static_cast<uint32_t>(state >> 32);
  if (arrived + left != blocks_ || arrived == 0) return false;
  // All who count are waiting, so nobody comes between these two.
  state_.fetch_sub(arrived, std::memory_order_relaxed);
  turn_.fetch_add(1, std::memory_order_release);
  turn_.notify_all();
  return true;
}

}  // namespace millrace::cpu
