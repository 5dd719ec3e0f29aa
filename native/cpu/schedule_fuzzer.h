// Schedule fuzzer for tests: randomises everything that the ordering rules leave open.
//
// A CPU device that is opened with a seed, or while MILLRACE_CPU_SEED holds one, delays and reorders everything that no
// wait, stream or completion orders: which ready stream a thread takes, whatever its priority; when a stream ends its
// turn; whether light work runs inside the submitting call; in which order waiting streams resume; and how long
// operations take. Code that lacks a wait then gives different results from seed to seed, on any machine. The seed also
// chooses how often each of these happens. The threads' own timing varies too, so a seed names a set of schedules, not
// one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hal/status.h"

namespace millrace::cpu {

/// The random numbers of one device. Thread: any.
class ScheduleFuzzer {
 public:
  ScheduleFuzzer(uint32_t seed, uint32_t ordinal);

  /// For device `ordinal`, from the environment; null without a seed. kUnavailable: the variable holds something else;
  /// ignoring it would let a test pass without fuzzing.
  [[nodiscard]] static Result<std::unique_ptr<ScheduleFuzzer>> FromEnvironment(uint32_t ordinal);

  /// A random number from 0 to `limit` - 1.
  [[nodiscard]] uint32_t Below(uint32_t limit);
  /// Whether a helper thread leaves work to the pool that it could run itself.
  [[nodiscard]] bool RefusesHelper() { return Below(helper_one_in_) == 0; }
  /// Whether a stream that could continue lets others go first.
  [[nodiscard]] bool EndsTurn() { return Below(turn_one_in_) == 0; }
  /// Sometimes sleeps up to 200 us, or yields.
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
