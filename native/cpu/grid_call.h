// What a launch calls: the image's entry with its own copy of the arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/grid_barrier.h"
#include "cpu/kernel_fault.h"
#include "cpu/module.h"
#include "cpu/stop.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// The number of blocks of a grid, or of threads of a block, with these extents.
inline uint64_t Product(const unsigned (&dim)[3]) {
  return uint64_t{dim[0]} * dim[1] * dim[2];
}

/// What a run of blocks has to do with.
struct RunOfBlocks {
  /// Where the blocks wait for the rest of the grid; null where they cannot.
  GridBarrier* barrier = nullptr;
  /// Hears of what they launch; null where they cannot.
  CpuLauncher* launcher = nullptr;
  /// Looked at before each block.
  Stop stop = {};
};

class GridCall {
 public:
  /// Copies the parameters and outputs. `request.params` has as many entries as the kernel takes.
  explicit GridCall(const hal::LaunchRequest& request);
  /// What a kernel of `parent` launches: of the same image.
  GridCall(const GridCall& parent, const CpuChild& child);
  // Arguments are pointed to.
  GridCall(GridCall&&) = default;

  /// Runs the blocks [first, end). Thread: any, several at a time. A kernel that cannot go on is noted in `fault`, and
  /// none of the blocks run when one was noted before.
  void RunBlocks(uint64_t first, uint64_t end, LaunchFault& fault, const RunOfBlocks& of = {}) const;
  /// What the stream says of the launch when all of its blocks are over.
  [[nodiscard]] std::optional<hal::KernelFailure> FailureOf(const LaunchFault& fault) const;

  [[nodiscard]] bool is_bounded() const { return is_bounded_; }
  [[nodiscard]] uint64_t block_count() const;
  [[nodiscard]] uint64_t block_threads() const;
  [[nodiscard]] const CpuLaunch& launch() const { return launch_; }

 private:
  const std::shared_ptr<Image> image_;  // Stays loaded while its code runs.
  const EntryFunction function_;
  const bool is_bounded_;
  const uint32_t kernel_;
  std::vector<uint64_t> values_;  // Each parameter begins a word; behind them the outputs.
  size_t output_count_ = 0;
  std::vector<void*> params_;
  CpuLaunch launch_;
};

}  // namespace millrace::cpu
