#include "cpu/grid_barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <thread>

#include "hal/spin.h"

namespace millrace::cpu {
namespace {

// 10 to 30 us, about the time of a wake. Spinning pays only while every block has a core and some cores are left.
constexpr int kSpins = 500;
constexpr uint32_t kSparedCores = 2;

// Like wait and notify_all of std::atomic, but without their yields before sleeping: among hundreds of ready threads,
// each yield is a context switch.
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
  // The barrier cannot open before this block has arrived.
  const uint32_t turn = turn_.load(std::memory_order_relaxed);
  if (Count(kOneArrived)) return;
  for (int spin = 0; may_spin_ && spin < kSpins; ++spin) {
    if (turn_.load(std::memory_order_acquire) != turn) return;
    RelaxCore();
  }
  SleepWhile(turn_, turn);
}

// True for the last block to arrive, which opened the barrier.
bool GridBarrier::Count(uint64_t one) {
  const uint64_t state = state_.fetch_add(one, std::memory_order_acq_rel) + one;
  const auto arrived = static_cast<uint32_t>(state);
  const auto left = static_cast<uint32_t>(state >> 32);
  if (arrived + left != blocks_ || arrived == 0) return false;
  // All counted blocks are waiting, so none can arrive between these two statements.
  state_.fetch_sub(arrived, std::memory_order_relaxed);
  turn_.fetch_add(1, std::memory_order_release);
  WakeAll(turn_);
  return true;
}

}  // namespace millrace::cpu
