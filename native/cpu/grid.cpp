#include "cpu/grid.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace millrace::cpu {
namespace {

// What a visitor runs itself: less work than the wake of a thread that would do it.
constexpr uint64_t kLightThreads = 256;
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

uint64_t Product(const hal::Dim3& dim) {
  return uint64_t{dim.x} * dim.y * dim.z;
}

}  // namespace

Grid::Grid(const hal::LaunchRequest& request, int32_t priority)
    : Spread(Product(request.grid), priority),
      image_(static_cast<const CpuKernel*>(request.kernel)->image()),
      function_(static_cast<const CpuKernel*>(request.kernel)->function()),
      is_bounded_(static_cast<const CpuKernel*>(request.kernel)->is_bounded()),
      block_threads_(Product(request.block)),
      values_(request.params.size()),
      params_(request.params.size()) {
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

bool Grid::IsLight() const {
  return is_bounded_ && block_count() * block_threads_ <= kLightThreads;
}

void Grid::RunBlocks(uint64_t first, uint64_t end) {
  CpuLaunch launch = launch_;
  launch.dynamic_shared = shared_buffer.Reserve(launch.shared_bytes);
  function_(&launch, first, end);
}

}  // namespace millrace::cpu
