// The blocking-calls thread of a channel: it makes the driver calls that may block, such as copies of pageable host
// memory, allocations outside of the driver's pool, and builds of graphs. Meanwhile the channel parks the stream that
// needs the call, and issues records of the other streams.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "hal/hal.h"
#include "runtime/in_flight.h"

namespace millrace {

/// A call that the blocking-calls thread makes for one record, and its result. That thread writes `status` and
/// `memory`. The channel reads them after it has been notified of the end and has set `is_done`.
struct BlockingCall {
  bool is_done = false;
  Status status;
  std::unique_ptr<hal::Memory> memory;  // The result of an allocation.
  bool is_last_try = false;             // No free was pending when it began.
  bool is_staging = false;              // It allocates staging memory for a copy that the channel issues afterwards.
  // Of a copy: the device memory that it uses, which it keeps, and the host memory.
  std::vector<MemoryUse> uses;
  std::vector<MemoryRef> held;
  std::vector<HostUse> host;
};

/// The first piece of work starts the thread. Work holds no reference to its channel, because the channel waits for the
/// blocking-calls thread when it ends.
class BlockingCallsThread {
 public:
  BlockingCallsThread();
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
      state_;  // Shared with the thread, which may still be ending after the destruction of this object.
};

}  // namespace millrace
