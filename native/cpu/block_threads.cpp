#include "cpu/block_threads.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace millrace::cpu {

CooperativeGrid::CooperativeGrid(const hal::LaunchRequest& request, ScheduleFuzzer* fuzzer)
    : call_(request),
      fuzzer_(fuzzer),
      order_(call_.block_count()),
      barrier_(block_count()),
      unfinished_(block_count()) {
  MR_CHECK(block_count() > 0 && block_count() <= kMaxCooperativeBlocks);
  std::iota(order_.begin(), order_.end(), 0u);
  Shuffle();
}

void CooperativeGrid::Prepare() {
  barrier_.Prepare();
  fault_.Clear();
  unfinished_.store(block_count(), std::memory_order_relaxed);
  begun_ = 0;
  is_stopped_ = false;
  Shuffle();
}

void CooperativeGrid::Shuffle() {
  if (fuzzer_ == nullptr) return;
  for (uint32_t left = block_count(); left > 1; --left) std::swap(order_[left - 1], order_[fuzzer_->Below(left)]);
}

void CooperativeGrid::RunBlock(uint32_t number) {
  if (fuzzer_ != nullptr) fuzzer_->Pause();
  const uint32_t block = order_[number];
  if (!is_stopped_) call_.RunBlocks(block, block + 1, fault_, {.barrier = &barrier_});
  barrier_.Leave();
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  pool_->Schedule(std::exchange(stream_, nullptr));
}

BlockThreads::~BlockThreads() {
  MR_CHECK(threads_.empty());
}

Status BlockThreads::Grow(uint32_t before, uint32_t blocks) {
  std::lock_guard growing(growing_);
  if (blocks > before) wanted_ += blocks - before;
  const uint64_t wanted = std::min<uint64_t>(kMaxCooperativeBlocks, wanted_);
  uint32_t made = 0;
  int error = 0;
  for (; threads_.size() < wanted && error == 0;) {
    pthread_t thread;
    error = StartQuietThread("mr-block", &thread, &BlockThreads::ThreadEntry, this);
    if (error != 0) break;
    threads_.push_back(thread);
    ++made;
  }
  uint32_t begun = 0;
  if (made > 0) {
    std::lock_guard lock(mutex_);
    free_ += made;
    begun = StartNext();
  }
  Notify(begun);
  if (threads_.size() >= blocks) return {};
  if (blocks > before) wanted_ -= blocks - before;
  return {StatusCode::kOutOfMemory, "starting a thread for each block of a cooperative launch", error};
}

void BlockThreads::Shrink(uint32_t blocks) {
  std::lock_guard growing(growing_);
  wanted_ -= blocks;
}

void BlockThreads::Run(std::shared_ptr<CooperativeGrid> grid, ThreadPool& pool, std::shared_ptr<Runnable> stream) {
  grid->pool_ = &pool;
  grid->stream_ = std::move(stream);
  uint32_t begun;
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(grid));
    begun = StartNext();
  }
  Notify(begun);
}

void BlockThreads::Join() {
  {
    std::lock_guard lock(mutex_);
    MR_CHECK(waiting_.empty() && starting_.empty());
    is_closing_ = true;
  }
  wake_.notify_all();
  std::lock_guard growing(growing_);
  for (pthread_t thread : threads_) pthread_join(thread, nullptr);
  threads_.clear();
}

void* BlockThreads::ThreadEntry(void* threads) {
  EnterPoolThread("mr-block");
  static_cast<BlockThreads*>(threads)->ThreadMain();
  return nullptr;
}

void BlockThreads::ThreadMain() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_closing_ || !starting_.empty(); });
    if (starting_.empty()) return;
    std::shared_ptr<CooperativeGrid> grid = starting_.front();
    if (grid->begun_ == 0) grid->is_stopped_ = grid->cancellation_.IsRequested();
    const uint32_t number = grid->begun_++;
    if (grid->begun_ == grid->block_count()) starting_.pop_front();
    lock.unlock();
    grid->RunBlock(number);
    grid.reset();
    lock.lock();
    ++free_;
    if (const uint32_t begun = StartNext(); begun > 0) {
      lock.unlock();
      Notify(begun);
      lock.lock();
    }
  }
}

uint32_t BlockThreads::StartNext() {
  uint32_t begun = 0;
  while (!waiting_.empty() && waiting_.front()->block_count() <= free_) {
    free_ -= waiting_.front()->block_count();
    begun += waiting_.front()->block_count();
    starting_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return begun;
}

void BlockThreads::Notify(uint32_t blocks) {
  for (; blocks > 0; --blocks) wake_.notify_one();
}

}  // namespace millrace::cpu
