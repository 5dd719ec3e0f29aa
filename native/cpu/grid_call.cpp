#include "cpu/grid_call.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace millrace::cpu {
namespace {

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
      MR_CHECK(address_ != nullptr);  // The limit of a block is 227 KiB.
    }
    return address_;
  }

 private:
  char* address_ = nullptr;
  size_t bytes_ = 0;
};

thread_local SharedBuffer shared_buffer;

uint64_t Product(const unsigned (&dim)[3]) {
  return uint64_t{dim[0]} * dim[1] * dim[2];
}

void WaitForGrid(void* barrier) {
  static_cast<GridBarrier*>(barrier)->Wait();
}

}  // namespace

GridCall::GridCall(const hal::LaunchRequest& request)
    : image_(static_cast<const CpuKernel*>(request.kernel)->image()),
      function_(static_cast<const CpuKernel*>(request.kernel)->function()),
      is_bounded_(static_cast<const CpuKernel*>(request.kernel)->is_bounded()),
      values_(request.params.size()),
      params_(request.params.size()) {
  const std::vector<uint32_t>& sizes = static_cast<const CpuKernel*>(request.kernel)->param_bytes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::memcpy(&values_[i], request.params[i], sizes[i]);
    params_[i] = &values_[i];
  }
  launch_ = {.params = params_.data(),
             .grid = {request.grid.x, request.grid.y, request.grid.z},
             .block = {request.block.x, request.block.y, request.block.z},
             .shared_bytes = request.shared_bytes,
             .dynamic_shared = nullptr,
             .wait_for_grid = nullptr,
             .grid_barrier = nullptr,
             .launcher = nullptr};
}

GridCall::GridCall(const GridCall& parent, const CpuChild& child)
    : image_(parent.image_), function_(child.entry), is_bounded_(false), params_(child.count) {
  constexpr size_t kWord = sizeof(uint64_t);
  size_t words = 0;
  for (unsigned i = 0; i < child.count; ++i) words += (child.sizes[i] + kWord - 1) / kWord;
  values_.resize(words);
  uint64_t* next = values_.data();
  for (unsigned i = 0; i < child.count; ++i) {
    std::memcpy(next, child.params[i], child.sizes[i]);
    params_[i] = next;
    next += (child.sizes[i] + kWord - 1) / kWord;
  }
  launch_ = {.params = params_.data(),
             .grid = {child.grid[0], child.grid[1], child.grid[2]},
             .block = {child.block[0], child.block[1], child.block[2]},
             .shared_bytes = static_cast<unsigned>(child.shared_bytes),
             .dynamic_shared = nullptr,
             .wait_for_grid = nullptr,
             .grid_barrier = nullptr,
             .launcher = nullptr};
}

void GridCall::RunBlocks(uint64_t first, uint64_t end, GridBarrier* barrier, CpuLauncher* launcher) const {
  CpuLaunch launch = launch_;
  launch.launcher = launcher;
  launch.dynamic_shared = shared_buffer.Reserve(launch.shared_bytes);
  if (barrier != nullptr) {
    launch.wait_for_grid = &WaitForGrid;
    launch.grid_barrier = barrier;
  }
  function_(&launch, first, end);
}

uint64_t GridCall::block_count() const {
  return Product(launch_.grid);
}

uint64_t GridCall::block_threads() const {
  return Product(launch_.block);
}

}  // namespace millrace::cpu
