// The thread of a channel for work that may block: copies of pageable host memory, and allocations outside of the
// driver's pool. The channel parks the stream meanwhile and issues records of the others.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "hal/hal.h"
#include "runtime/host_entry.h"
#include "runtime/memory_entry.h"

namespace millrace {

/// The work of the pump for one record, and its result. The pump writes `status` and `memory`. The channel sets
/// `is_done` when it hears of the end, and reads them then.
struct PumpedRecord {
  bool is_done = false;
  Status status;
  std::unique_ptr<hal::Memory> memory;  // The result of an allocation.
  bool is_last_try = false;             // No free was pending when it began.
  bool is_staging = false;              // It allocates staging memory for a copy that the channel issues afterwards.
  MemoryRef written;                    // Device memory that the copy writes.
  bool is_whole = false;                // The copy overwrites all of `written`.
  HostRange staged;                     // Staging memory that the copy writes.
};

/// The first piece of work starts the thread. Work holds no reference to its channel, because the channel waits for the
/// pump when it ends.
class Pump {
 public:
  Pump();
  /// Runs `work` after all earlier work. kUnavailable if the thread cannot be started: `work` is then dropped, and the
  /// next call tries again. Thread: channel.
  Status Do(std::function<void()> work);
  /// Drops the work that has not begun and waits for the rest. Nothing runs afterwards. Thread: channel.
  void Stop();
  /// Whether Stop was called. Long work checks this repeatedly. Thread: any.
  [[nodiscard]] bool IsStopping() const;

 private:
  struct State;
  static void Run(State& state);
  const std::shared_ptr<State>
      state_;  // Shared with the thread, which may still be ending after the pump's destruction.
};

}  // namespace millrace
