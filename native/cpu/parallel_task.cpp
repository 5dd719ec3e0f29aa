#include "cpu/parallel_task.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Waking a thread takes between 7 and 60 us, so an item that finishes within this time runs on one thread.
constexpr std::chrono::nanoseconds kAloneTime = std::chrono::microseconds(20);
// Long enough that the shared counter costs nothing, short enough that a newly ready stream soon gets a thread.
constexpr std::chrono::nanoseconds kChunkTime = std::chrono::microseconds(100);
// Minimum number of chunks per thread, so that threads with unequal blocks finish together.
constexpr uint64_t kChunksPerThread = 4;

}  // namespace

bool ParallelTask::RunOn(Pool& pool, std::shared_ptr<Runnable> stream) {
  // The first blocks may be cheaper than the rest, so a thread never takes more than this at once.
  const uint64_t largest = std::max<uint64_t>(1, block_count_ / (uint64_t{pool.thread_count()} * kChunksPerThread));
  if (RunAlone(largest)) return true;
  pool_ = &pool;
  stream_ = std::move(stream);
  chunk_ = std::clamp<uint64_t>(chunk_, 1, largest);
  const uint64_t left = unfinished_.load(std::memory_order_relaxed);
  const uint64_t helpers = std::min<uint64_t>((left - 1) / chunk_, pool.thread_count() - 1);
  if (helpers > 0) pool.Share(shared_from_this(), static_cast<uint32_t>(helpers));
  return TakeChunks();
}

void ParallelTask::Run() {
  if (TakeChunks()) std::exchange(stream_, nullptr)->Run();
}

// True when no block is left. Otherwise `chunk_` is the number of blocks that fill kChunkTime.
bool ParallelTask::RunAlone(uint64_t largest_step) {
  if (block_count_ == 1) {
    RunHere();
    unfinished_.store(0, std::memory_order_release);
    return true;
  }
  const auto start = Clock::now();
  std::chrono::nanoseconds taken{0};
  uint64_t done = 0;
  for (uint64_t step = 1; taken < kAloneTime; step = std::min(2 * step, largest_step)) {
    const bool is_stopped = stop_.IsAsked();
    const uint64_t end = is_stopped ? block_count_ : done + std::min(step, block_count_ - done);
    if (!is_stopped) RunBlocks(done, end);
    done = end;
    if (done == block_count_) {
      unfinished_.store(0, std::memory_order_release);
      return true;
    }
    taken = Clock::now() - start;
  }
  chunk_ = static_cast<uint64_t>(static_cast<double>(done) * (kChunkTime / std::chrono::duration<double>(taken)));
  next_.store(done, std::memory_order_relaxed);
  unfinished_.store(block_count_ - done, std::memory_order_relaxed);
  return false;
}

// True when the calling thread finished the last chunk: it then drives the stream. When false, other threads may finish
// the item at any moment, but the caller still holds it as a Runnable.
bool ParallelTask::TakeChunks() {
  while (true) {
    // The first thread that sees the stop takes all remaining blocks.
    const bool is_stopped = stop_.IsAsked();
    const uint64_t first = is_stopped ? next_.exchange(block_count_, std::memory_order_relaxed)
                                      : next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (first >= block_count_) {
      pool_->Withdraw(*this);
      return false;
    }
    const uint64_t end = is_stopped ? block_count_ : std::min(block_count_, first + chunk_);
    if (end == block_count_) pool_->Withdraw(*this);
    if (!is_stopped) RunBlocks(first, end);
    if (unfinished_.fetch_sub(end - first, std::memory_order_acq_rel) == end - first) return true;
    if (end == block_count_) return false;
    if (pool_->HasRival(priority())) {
      // Queues behind the rival, so that the item continues even if no thread becomes idle.
      pool_->PutBack(shared_from_this());
      return false;
    }
  }
}

}  // namespace millrace::cpu
