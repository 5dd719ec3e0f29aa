// One launch on the CPU: blocks that may spread over the pool.
//
// The thread that starts a grid first works alone, in growing steps, and learns what a block costs. Most launches end
// there and wake nobody. A longer one is shared: idle threads join and everyone takes chunks from one counter. No
// thread ever waits for another's chunk; whoever finishes the last one goes on with the stream. Hence a helper cannot
// take part in a deadlock, and a kernel of one block occupies exactly one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/module.h"
#include "cpu/pool.h"
#include "hal/hal.h"

namespace millrace::cpu {

class Grid final : public Runnable, public std::enable_shared_from_this<Grid> {
 public:
  /// Copies the parameters. `request.params` has as many entries as the kernel takes.
  Grid(const hal::LaunchRequest& request, int32_t priority);

  [[nodiscard]] uint64_t thread_count() const { return block_count_ * block_threads_; }
  [[nodiscard]] bool is_bounded() const { return is_bounded_; }
  [[nodiscard]] bool IsFinished() const { return unfinished_.load(std::memory_order_acquire) == 0; }

  /// Runs every block on the calling thread. Thread: any.
  void RunHere();
  /// Runs the grid on the calling pool thread and on others. True: it is finished, and the caller goes on with the
  /// stream. False: `stream` is run by the thread that finishes it, perhaps already; the caller touches it no more.
  [[nodiscard]] bool RunOn(Pool& pool, std::shared_ptr<Runnable> stream);
  /// A helper's turn: whole chunks, until there are none or something urgent waits.
  void Run() override;

 private:
  [[nodiscard]] bool RunAlone(uint64_t largest_step);
  [[nodiscard]] bool TakeChunks();
  void RunBlocks(uint64_t first, uint64_t end);

  const std::shared_ptr<Image> image_;  // Stays loaded while its code runs.
  const EntryFunction function_;
  const bool is_bounded_;
  const uint64_t block_count_;
  const uint64_t block_threads_;
  std::vector<uint64_t> values_;
  std::vector<void*> params_;
  CpuLaunch launch_;

  // Written before the grid is shared, read by helpers.
  Pool* pool_ = nullptr;  // The stream, which the grid keeps alive, holds it.
  std::shared_ptr<Runnable> stream_;
  uint64_t chunk_ = 1;

  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> unfinished_;
};

}  // namespace millrace::cpu
