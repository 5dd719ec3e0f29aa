#include "cpu/grid.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace millrace::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Waking a thread costs between 7 and 60 us, so a grid that is over by then stays where it is.
constexpr std::chrono::nanoseconds kAloneTime = std::chrono::microseconds(20);
// Long enough to make the shared counter free, short enough that a stream which becomes ready soon has its turn.
constexpr std::chrono::nanoseconds kChunkTime = std::chrono::microseconds(100);
// Chunks for each thread at least, so that unequal blocks still end together.
constexpr uint64_t kChunksPerThread = 4;
constexpr size_t kSharedAlignment = 256;

// Dynamic shared memory of the blocks that a thread runs, one after the other.
class SharedBuffer {
 public:
  ~SharedBuffer() { std::free(address_); }
  char* Reserve(size_t bytes) {
    if (bytes > bytes_) {
      std::free(address_);
      bytes_ = (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
      address_ = static_cast<char*>(std::aligned_alloc(kSharedAlignment, bytes_));
      MR_CHECK(address_ != nullptr);  // The limit of a block is 48 KiB.
    }
    return address_;
  }

 private:
  char* address_ = nullptr;
  size_t bytes_ = 0;
};

thread_local SharedBuffer shared_buffer;

uint64_t Product(const hal::Dim3& dim) {
  return uint64_t{dim.x} * dim.y * dim.z;
}

}  // namespace

Grid::Grid(const hal::LaunchRequest& request, int32_t priority)
    : Runnable(priority),
      image_(static_cast<const CpuKernel*>(request.kernel)->image()),
      function_(static_cast<const CpuKernel*>(request.kernel)->function()),
      is_bounded_(static_cast<const CpuKernel*>(request.kernel)->is_bounded()),
      block_count_(Product(request.grid)),
      block_threads_(Product(request.block)),
      values_(request.params.size()),
      params_(request.params.size()),
      unfinished_(block_count_) {
  const std::vector<uint32_t>& sizes = static_cast<const CpuKernel*>(request.kernel)->param_bytes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::memcpy(&values_[i], request.params[i], sizes[i]);
    params_[i] = &values_[i];
  }
  launch_ = {params_.data(),
             {request.grid.x, request.grid.y, request.grid.z},
             {request.block.x, request.block.y, request.block.z},
             request.shared_bytes,
             nullptr};
}

void Grid::RunHere() {
  RunBlocks(0, block_count_);
}

bool Grid::RunOn(Pool& pool, std::shared_ptr<Runnable> stream) {
  // However cheap the first blocks were, the others may not be, so no thread takes more of them at once.
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

void Grid::Run() {
  if (TakeChunks()) std::exchange(stream_, nullptr)->Run();
}

// True when no block is left. Otherwise `chunk_` is the number of blocks that fill kChunkTime.
bool Grid::RunAlone(uint64_t largest_step) {
  if (block_count_ == 1) {
    RunHere();
    return true;
  }
  const auto start = Clock::now();
  std::chrono::nanoseconds taken{0};
  uint64_t done = 0;
  for (uint64_t step = 1; taken < kAloneTime; step = std::min(2 * step, largest_step)) {
    const uint64_t end = done + std::min(step, block_count_ - done);
    RunBlocks(done, end);
    done = end;
    if (done == block_count_) return true;
    taken = Clock::now() - start;
  }
  chunk_ = static_cast<uint64_t>(static_cast<double>(done) * (kChunkTime / std::chrono::duration<double>(taken)));
  next_.store(done, std::memory_order_relaxed);
  unfinished_.store(block_count_ - done, std::memory_order_relaxed);
  return false;
}

// True when the calling thread finished the last chunk: the stream is now its own. When this is false the grid may be
// finished by others at any moment, but it is a Runnable that the caller still holds.
bool Grid::TakeChunks() {
  while (true) {
    const uint64_t first = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (first >= block_count_) {
      pool_->Withdraw(*this);
      return false;
    }
    const uint64_t end = std::min(block_count_, first + chunk_);
    if (end == block_count_) pool_->Withdraw(*this);
    RunBlocks(first, end);
    if (unfinished_.fetch_sub(end - first, std::memory_order_acq_rel) == end - first) return true;
    if (end == block_count_) return false;
    if (pool_->HasRival(priority())) {
      // Takes its place behind the rival, so that the grid goes on even when no thread is ever idle.
      pool_->PutBack(shared_from_this());
      return false;
    }
  }
}

void Grid::RunBlocks(uint64_t first, uint64_t end) {
  CpuLaunch launch = launch_;
  launch.dynamic_shared = shared_buffer.Reserve(launch.shared_bytes);
  function_(&launch, first, end);
}

}  // namespace millrace::cpu
