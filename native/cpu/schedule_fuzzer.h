// Randomised scheduling, for tests: what the rules of order leave free is decided by dice.
//
// A CPU device that is opened while MILLRACE_CPU_SEED holds a number delays and reorders everything that no wait, no
// stream and no completion orders: which ready stream a thread takes, whatever its priority, when a stream gives up its
// turn, whether light work runs inside the call that submits it, in which order waiting streams go on, and how long
// anything takes. A program that lacks a wait then gives different results from seed to seed, on any machine. The seed
// also chooses how often each of these happens, so that different seeds look for different mistakes. The threads'
// own timing comes on top: a seed names a set of schedules, not one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hal/status.h"

namespace millrace::cpu {

/// Dice of one device. Thread: any.
class ScheduleFuzzer {
 public:
  ScheduleFuzzer(uint32_t seed, uint32_t ordinal);

  /// For device `ordinal`, as the environment says now: nothing when it names no seed. kUnavailable: it names something
  /// else, which would make a test look as if it had passed.
  [[nodiscard]] static Result<std::unique_ptr<ScheduleFuzzer>> FromEnvironment(uint32_t ordinal);

  /// A number from 0 to `limit` - 1.
  [[nodiscard]] uint32_t Below(uint32_t limit);
  /// Whether a thread that might run something itself leaves it to the pool.
  [[nodiscard]] bool RefusesHelper() { return Below(helper_one_in_) == 0; }
  /// Whether a stream that might go on lets others go first.
  [[nodiscard]] bool EndsTurn() { return Below(turn_one_in_) == 0; }
  /// Now and then takes up to 200 us, or lets another thread run.
  void Pause();

 private:
  [[nodiscard]] uint64_t Draw();

  std::atomic<uint64_t> state_;
  std::atomic<uint32_t> pauses_{0};
  // Chosen by the seed.
  uint32_t helper_one_in_;
  uint32_t turn_one_in_;
  uint32_t pause_one_in_;
};

}  // namespace millrace::cpu
