#include "cpu/grid_barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <thread>

#include "cpu/cpu_pause.h"

namespace millrace::cpu {
namespace {

// 10 to 30 us, what a sleeper's wake takes. It pays only while every block has a core, with some left for others.
constexpr int kSpins = 500;
constexpr uint32_t kSparedCores = 2;

// As std::atomic's wait and notify_all, but for the turns that these give up before they sleep: among hundreds of
// threads that are ready, each such turn is a switch.
uint32_t* Address(std::atomic<uint32_t>& word) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return reinterpret_cast<uint32_t*>(&word);
}

void SleepWhile(std::atomic<uint32_t>& word, uint32_t value) {
  while (word.load(std::memory_order_acquire) == value) {
    syscall(SYS_futex, Address(word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
  }
}

void WakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, Address(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

GridBarrier::GridBarrier(uint32_t blocks)
    : blocks_(blocks), may_spin_(blocks + kSparedCores <= std::thread::hardware_concurrency()) {}

void GridBarrier::Wait() {
  // It cannot open before this block has come.
  const uint32_t turn = turn_.load(std::memory_order_relaxed);
  if (Count(kOneArrived)) return;
  for (int spin = 0; may_spin_ && spin < kSpins; ++spin) {
    if (turn_.load(std::memory_order_acquire) != turn) return;
    RelaxCore();
  }
  SleepWhile(turn_, turn);
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
  WakeAll(turn_);
  return true;
}

}  // namespace millrace::cpu
