// One item of a stream whose parts may run on several threads: the blocks of a launch, the pieces of a large copy.
//
// The thread that starts it first works alone, in growing steps, and learns what a block costs. Most items end there
// and wake nobody. A longer one is shared: idle threads join and everyone takes chunks from one counter. No thread ever
// waits for another's chunk; whoever finishes the last one goes on with the stream. Hence a helper cannot take part in
// a deadlock, and an item of one block occupies exactly one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "cpu/pool.h"
#include "cpu/stop.h"
#include "hal/hal.h"

namespace millrace::cpu {

class ParallelTask : public Runnable, public std::enable_shared_from_this<ParallelTask> {
 public:
  ParallelTask(uint64_t block_count, int32_t priority)
      : Runnable(priority), block_count_(block_count), unfinished_(block_count) {}

  /// Whether a thread that has something else to do may run it all.
  [[nodiscard]] virtual bool IsLight() const = 0;
  /// Blocks that have not begun by then do not; they count as run. Before it runs.
  void SetStop(const Stop& stop) { stop_ = stop; }
  /// Whether RunOn has run all blocks.
  [[nodiscard]] bool IsFinished() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  /// Whether what the blocks began is over as well, once they are. False: `stream` is run by the thread that ends it.
  [[nodiscard]] virtual bool IsOver(std::shared_ptr<Runnable>) { return true; }

  /// Why it failed, once it is over. Its outputs are valid as long as this.
  [[nodiscard]] virtual std::optional<hal::KernelFailure> Failure() const { return std::nullopt; }

  /// Runs every block on the calling thread. Thread: any.
  void RunHere() { RunBlocks(0, block_count_); }
  /// Runs it on the calling pool thread and on others. True: it is finished, and the caller goes on with the stream.
  /// False: `stream` is run by the thread that finishes it, perhaps already; the caller touches it no more.
  [[nodiscard]] bool RunOn(Pool& pool, std::shared_ptr<Runnable> stream);
  /// A helper's turn: whole chunks, until there are none or something urgent waits.
  void Run() override;

 protected:
  [[nodiscard]] uint64_t block_count() const { return block_count_; }
  [[nodiscard]] const Stop& stop() const { return stop_; }

 private:
  /// Blocks are independent and each is run once. Thread: backend, several at a time.
  virtual void RunBlocks(uint64_t first, uint64_t end) = 0;
  [[nodiscard]] bool RunAlone(uint64_t largest_step);
  [[nodiscard]] bool TakeChunks();

  const uint64_t block_count_;

  // Written before it is shared, read by helpers.
  Pool* pool_ = nullptr;  // The stream, which this keeps alive, holds it.
  std::shared_ptr<Runnable> stream_;
  uint64_t chunk_ = 1;
  Stop stop_;

  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> unfinished_;
};

}  // namespace millrace::cpu
