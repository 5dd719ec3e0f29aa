// An item of a stream whose parts may run on several threads: the blocks of a launch, the chunks of a large copy.
//
// The first thread starts alone, in growing steps, and measures the cost of a block. Most items finish that way and
// wake no other thread. A longer item is shared: idle threads join, and all take chunks from one counter. No thread
// waits for another's chunk; the one that finishes the last chunk continues the stream. So helpers cannot deadlock, and
// an item of one block uses exactly one thread.
//
// A graph runs the same item at each launch. A helper thread of an earlier run may still look for a chunk while the
// next run begins: the counter then either refuses it or gives it a chunk of the next run, and what a thread reads of a
// run it reads after it took a chunk of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "cpu/cancellation.h"
#include "cpu/thread_pool.h"
#include "hal/hal.h"

namespace millrace::cpu {

class ParallelItem : public Runnable, public std::enable_shared_from_this<ParallelItem> {
 public:
  ParallelItem(uint64_t block_count, int32_t priority)
      : Runnable(priority), block_count_(block_count), next_(block_count), unfinished_(block_count) {}

  /// Whether a thread with other work may run the whole item itself.
  [[nodiscard]] virtual bool IsLight() const = 0;
  /// Whether a block is known to take longer than to wake a thread: other threads then join before the first has run.
  [[nodiscard]] virtual bool IsLong() const { return false; }
  /// After the stop, blocks that have not begun count as run. Call before the item runs.
  void SetCancellation(const Cancellation& cancellation) { cancellation_ = cancellation; }
  /// Before another run, when the last one is over.
  virtual void Prepare(const Cancellation& cancellation, int32_t priority);
  /// Whether RunOn has run all blocks.
  [[nodiscard]] bool IsFinished() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  /// Whether work that the blocks began has finished too. False: the thread that finishes it runs `stream`.
  [[nodiscard]] virtual bool IsOver(std::shared_ptr<Runnable>) { return true; }

  /// Why it failed, once it is over.
  [[nodiscard]] virtual std::optional<hal::KernelFailure> Failure() const { return std::nullopt; }

  /// Runs every block on the calling thread. Thread: any.
  void RunHere() { RunBlocks(0, block_count_); }
  /// Runs it on the calling pool thread and on others. True: it is finished, and the caller continues the stream.
  /// False: the thread that finishes it runs `stream`, perhaps already; the caller must not touch it again.
  [[nodiscard]] bool RunOn(ThreadPool& pool, std::shared_ptr<Runnable> stream);
  /// A helper thread's turn: takes chunks until there are none, or until something as urgent waits.
  void Run() override;

 protected:
  [[nodiscard]] uint64_t block_count() const { return block_count_; }
  [[nodiscard]] const Cancellation& cancellation() const { return cancellation_; }

 private:
  /// Blocks are independent, and each runs once. Thread: backend, several at a time.
  virtual void RunBlocks(uint64_t first, uint64_t end) = 0;
  [[nodiscard]] std::optional<uint64_t> RunAlone(uint64_t largest_step);
  [[nodiscard]] bool TakeChunks();

  const uint64_t block_count_;

  // Written before sharing, read by helpers.
  ThreadPool* pool_ = nullptr;  // The stream, which `stream_` keeps alive, holds the pool. The same at every run.
  std::shared_ptr<Runnable> stream_;
  Cancellation cancellation_;

  std::atomic<uint64_t> chunk_{1};
  std::atomic<uint64_t> next_;  // At least block_count_ while no chunks are shared.
  std::atomic<uint64_t> unfinished_;
};

}  // namespace millrace::cpu
