// Cooperative launches on the CPU: every block has its own thread, so that all blocks are resident and may wait for
// each other, at the grid barrier or for a value in memory.
//
// These threads are separate from the pool, whose threads (one per core) must never block. A launch starts when there
// are threads for all of its blocks; launches start in the order in which their streams reached them. Submission
// creates the threads, because it is the last point at which the launch can be rejected; they stay until the device
// closes.
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

#include "cpu/cancellation.h"
#include "cpu/grid_barrier.h"
#include "cpu/grid_call.h"
#include "cpu/thread_pool.h"
#include "hal/status.h"

namespace millrace::cpu {

/// Most blocks of cooperative launches that a device runs at once. Each needs a thread of the system, and containers
/// and users are often limited to some thousands.
inline constexpr uint32_t kMaxCooperativeBlocks = 1024;

/// One cooperative launch.
class CooperativeGrid {
 public:
  /// At most kMaxCooperativeBlocks blocks. `fuzzer` randomises when each one begins; null: in order.
  CooperativeGrid(const hal::LaunchRequest& request, ScheduleFuzzer* fuzzer);

  [[nodiscard]] uint32_t block_count() const { return static_cast<uint32_t>(order_.size()); }
  /// Before another run, when the last one is over.
  void Prepare();
  void SetParam(size_t index, uint64_t value) { call_.SetParam(index, value); }
  /// The launch starts as a whole or not at all, since its blocks may wait for each other; a stopped one counts as run.
  void SetCancellation(const Cancellation& cancellation) { cancellation_ = cancellation; }
  [[nodiscard]] bool IsFinished() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  /// Why it failed, once it is finished.
  [[nodiscard]] std::optional<hal::KernelFailure> Failure() const { return call_.FailureOf(fault_); }

 private:
  friend class BlockThreads;

  /// Thread: one of BlockThreads.
  void RunBlock(uint32_t number);

  void Shuffle();

  GridCall call_;
  ScheduleFuzzer* const fuzzer_;
  std::vector<uint32_t> order_;
  GridBarrier barrier_;
  LaunchFault fault_;
  std::atomic<uint32_t> unfinished_;

  Cancellation cancellation_;
  // Guarded by BlockThreads::mutex_ until a block begins.
  uint32_t begun_ = 0;
  bool is_stopped_ = false;
  // Written before it starts; read by the thread that finishes it.
  ThreadPool* pool_ = nullptr;  // The stream, which `stream_` keeps alive, holds the pool.
  std::shared_ptr<Runnable> stream_;
};

class BlockThreads {
 public:
  BlockThreads() = default;
  ~BlockThreads();
  BlockThreads(const BlockThreads&) = delete;
  BlockThreads& operator=(const BlockThreads&) = delete;

  /// A stream's largest launch grows from `before` to `blocks` blocks. Creates threads for it and, as far as the system
  /// allows, for all streams at once. A graph counts as a stream. kOutOfMemory: too few threads for the launch. Thread:
  /// any.
  Status Grow(uint32_t before, uint32_t blocks);
  /// The stream has ended. Thread: any.
  void Shrink(uint32_t blocks);

  /// Runs all blocks, then schedules `stream` on the pool. Thread: any.
  void Run(std::shared_ptr<CooperativeGrid> grid, ThreadPool& pool, std::shared_ptr<Runnable> stream);
  /// Joins the threads, once no launch runs. Idempotent. Thread: channel.
  void Join();

 private:
  static void* ThreadEntry(void* threads);
  void ThreadMain();
  /// Starts the launches for which there are threads; returns the number of their blocks. Needs `mutex_`.
  [[nodiscard]] uint32_t StartNext();
  void Notify(uint32_t blocks);

  std::mutex growing_;  // Taken before mutex_.
  // Guarded by growing_.
  std::vector<pthread_t> threads_;
  uint64_t wanted_ = 0;  // Sum of the largest launches of all streams.

  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<CooperativeGrid>> waiting_;
  std::deque<std::shared_ptr<CooperativeGrid>> starting_;  // Some of their blocks have no thread yet.
  uint32_t free_ = 0;                                      // Threads without an assigned block.
  bool is_closing_ = false;
};

}  // namespace millrace::cpu
