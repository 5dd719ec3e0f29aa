// Cooperative launches on the CPU: every block has a thread of its own, so that all of them are alive at once and may
// wait for each other, at the grid's barrier or at memory that another one writes.
//
// These threads are beside those of the pool: a pool has a thread for each core, and none of them may be held by a
// block that waits. A launch starts when there are threads for all of its blocks, and launches start in the order in
// which their streams came to them. The threads are made when a launch is submitted, since it is then that it can be
// refused, and kept until the device closes.
#pragma once

#include <pthread.h>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cpu/grid_barrier.h"
#include "cpu/grid_call.h"
#include "cpu/pool.h"
#include "cpu/stop.h"
#include "hal/status.h"

namespace millrace::cpu {

/// Blocks of cooperative launches that a device runs at once. Each takes a thread of the system, of which containers
/// and users have some thousands.
inline constexpr uint32_t kMostBlocksTogether = 1024;

/// One cooperative launch.
class CooperativeGrid {
 public:
  /// At most kMostBlocksTogether blocks, of which each begins when the dice of `fuzzer` say; null: in their order.
  CooperativeGrid(const hal::LaunchRequest& request, ScheduleFuzzer* fuzzer);

  [[nodiscard]] uint32_t block_count() const { return static_cast<uint32_t>(order_.size()); }
  /// It begins whole or not at all, since its blocks may wait for each other; it counts as run then. Before it runs.
  void SetStop(const Stop& stop) { stop_ = stop; }
  [[nodiscard]] bool IsFinished() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  /// Why it failed, once it is finished. Its outputs are valid as long as this.
  [[nodiscard]] std::optional<hal::KernelFailure> Failure() const { return call_.FailureOf(fault_); }

 private:
  friend class BlockThreads;

  /// Thread: one of BlockThreads.
  void RunBlock(uint32_t number);

  const GridCall call_;
  ScheduleFuzzer* const fuzzer_;
  std::vector<uint32_t> order_;
  GridBarrier barrier_;
  LaunchFault fault_;
  std::atomic<uint32_t> unfinished_;

  Stop stop_;
  // Guarded by BlockThreads::mutex_ until a block begins.
  uint32_t begun_ = 0;
  bool is_stopped_ = false;
  // Written before it starts; read by the thread that ends it.
  Pool* pool_ = nullptr;  // The stream, which this keeps alive, holds it.
  std::shared_ptr<Runnable> stream_;
};

class BlockThreads {
 public:
  BlockThreads() = default;
  ~BlockThreads();
  BlockThreads(const BlockThreads&) = delete;
  BlockThreads& operator=(const BlockThreads&) = delete;

  /// A stream whose launches had up to `before` blocks has one of `blocks`. Makes the threads for it, and as far as the
  /// system lets it for all streams at once. kOutOfMemory: there are not enough for the launch. Thread: channel.
  Status Grow(uint32_t before, uint32_t blocks);
  /// The stream ends. Thread: channel.
  void Shrink(uint32_t blocks) { wanted_ -= blocks; }

  /// Runs all blocks, then schedules `stream` on the pool. Thread: any.
  void Run(std::shared_ptr<CooperativeGrid> grid, Pool& pool, std::shared_ptr<Runnable> stream);
  /// Nothing runs any more. Idempotent. Thread: channel.
  void Join();

 private:
  static void* ThreadEntry(void* threads);
  void ThreadMain();
  /// Begins what there are threads for. How many blocks. Needs `mutex_`.
  [[nodiscard]] uint32_t StartNext();
  void Notify(uint32_t blocks);

  // Thread: channel.
  std::vector<pthread_t> threads_;
  uint64_t wanted_ = 0;  // What the largest launches of all streams have together.

  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<CooperativeGrid>> waiting_;
  std::deque<std::shared_ptr<CooperativeGrid>> starting_;  // With blocks that no thread has taken yet.
  uint32_t free_ = 0;                                      // Threads that no block was promised.
  bool is_closing_ = false;
};

}  // namespace millrace::cpu
