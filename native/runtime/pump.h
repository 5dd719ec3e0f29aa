// The thread of a channel for what may block: copies of host memory that is not page-locked, and allocations that the
// driver makes outside of its pool. The channel parks the stream meanwhile and goes on with the others.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "hal/hal.h"
#include "runtime/host_entry.h"
#include "runtime/memory_entry.h"

namespace millrace {

/// What the pump does in the place of a record, and what comes of it. The pump writes `status` and `memory`; the
/// channel reads them when `is_done`, which it sets itself when it hears of the end.
struct PumpedRecord {
  bool is_done = false;
  Status status;
  std::unique_ptr<hal::Memory> memory;  // Of an allocation.
  bool is_last_try = false;             // No free was under way when it was begun.
  bool is_staging = false;              // Staging memory for a copy that the channel queues afterwards.
  MemoryRef written;                    // Device memory that a copy writes.
  bool is_whole = false;                // All of it.
  HostRange staged;                     // Staging memory that a copy writes.
};

/// Its thread is started by the first piece of work. What runs on it holds nothing of its channel, which waits for it
/// at its end.
class Pump {
 public:
  Pump();
  /// Runs `work` after what was given before. kUnavailable when the thread cannot be started: `work` is then dropped,
  /// and the next call tries again. Thread: channel.
  Status Do(std::function<void()> work);
  /// Forgets what has not begun and waits for what has. Nothing runs afterwards. Thread: channel.
  void Stop();
  /// Long work that may be given up looks at this now and then. Thread: any.
  [[nodiscard]] bool IsStopping() const;

 private:
  struct State;
  static void Run(State& state);
  const std::shared_ptr<State> state_;  // The thread's too: it may still be ending when the pump is gone.
};

}  // namespace millrace
