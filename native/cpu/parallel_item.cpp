#include "cpu/parallel_item.h"

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

bool ParallelItem::RunOn(ThreadPool& pool, std::shared_ptr<Runnable> stream) {
  // The first blocks may be cheaper than the rest, so a thread never takes more than this at once.
  const uint64_t largest = std::max<uint64_t>(1, block_count_ / (uint64_t{pool.thread_count()} * kChunksPerThread));
  const bool is_shared = block_count_ > 1 && IsLong();
  const std::optional<uint64_t> blocks = is_shared ? std::optional<uint64_t>(1) : RunAlone(largest);
  if (!blocks) return true;
  MR_CHECK(pool_ == nullptr || pool_ == &pool);
  if (pool_ == nullptr) pool_ = &pool;
  stream_ = std::move(stream);
  const uint64_t chunk = std::clamp<uint64_t>(*blocks, 1, largest);
  chunk_.store(chunk, std::memory_order_relaxed);
  const uint64_t left = unfinished_.load(std::memory_order_relaxed);
  next_.store(block_count_ - left, std::memory_order_release);
  const uint64_t helpers = std::min<uint64_t>((left - 1) / chunk, pool.thread_count() - 1);
  if (helpers > 0) pool.Share(shared_from_this(), static_cast<uint32_t>(helpers));
  if (!TakeChunks()) return false;
  // A graph's item outlives the run, and would keep the graph alive that owns it.
  stream_ = nullptr;
  return true;
}

void ParallelItem::Run() {
  if (TakeChunks()) std::exchange(stream_, nullptr)->Run();
}

void ParallelItem::Prepare(const Cancellation& cancellation, int32_t priority) {
  SetCancellation(cancellation);
  SetPriority(priority);
  unfinished_.store(block_count_, std::memory_order_relaxed);
}

// Nothing when no block is left. Otherwise the number of blocks that fill kChunkTime.
std::optional<uint64_t> ParallelItem::RunAlone(uint64_t largest_step) {
  if (block_count_ == 1) {
    RunHere();
    unfinished_.store(0, std::memory_order_release);
    return std::nullopt;
  }
  const auto start = Clock::now();
  std::chrono::nanoseconds taken{0};
  uint64_t done = 0;
  for (uint64_t step = 1; taken < kAloneTime; step = std::min(2 * step, largest_step)) {
    const bool is_stopped = cancellation_.IsRequested();
    const uint64_t end = is_stopped ? block_count_ : done + std::min(step, block_count_ - done);
    if (!is_stopped) RunBlocks(done, end);
    done = end;
    if (done == block_count_) {
      unfinished_.store(0, std::memory_order_release);
      return std::nullopt;
    }
    taken = Clock::now() - start;
  }
  unfinished_.store(block_count_ - done, std::memory_order_relaxed);
  return static_cast<uint64_t>(static_cast<double>(done) * (kChunkTime / std::chrono::duration<double>(taken)));
}

// True when the calling thread finished the last chunk: it then drives the stream. When false, other threads may finish
// the item at any moment, but the caller still holds it as a Runnable.
bool ParallelItem::TakeChunks() {
  while (true) {
    const uint64_t chunk = chunk_.load(std::memory_order_relaxed);
    // Acquires what the thread that shares the run has written.
    const uint64_t first = next_.fetch_add(chunk, std::memory_order_acquire);
    if (first >= block_count_) {
      pool_->Withdraw(*this);
      return false;
    }
    uint64_t end = std::min(block_count_, first + chunk);
    uint64_t taken = end - first;
    // The first thread that sees the stop takes all remaining blocks.
    const bool is_stopped = cancellation_.IsRequested();
    if (is_stopped) {
      const uint64_t rest = next_.exchange(block_count_, std::memory_order_relaxed);
      taken += block_count_ - std::min(block_count_, rest);
      end = block_count_;
    }
    if (end == block_count_) pool_->Withdraw(*this);
    if (!is_stopped) RunBlocks(first, end);
    if (unfinished_.fetch_sub(taken, std::memory_order_acq_rel) == taken) return true;
    if (end == block_count_) return false;
    if (pool_->HasRival(priority())) {
      // Queues behind the rival, so that the item continues even if no thread becomes idle.
      pool_->PutBack(shared_from_this());
      return false;
    }
  }
}

}  // namespace millrace::cpu
