// What a launch calls: the image's entry with its own copy of the arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/grid_barrier.h"
#include "cpu/module.h"
#include "hal/hal.h"

namespace millrace::cpu {

class GridCall {
 public:
  /// Copies the parameters. `request.params` has as many entries as the kernel takes.
  explicit GridCall(const hal::LaunchRequest& request);

  /// Runs the blocks [first, end), which wait for the rest of the grid at `barrier`; null where they cannot. Thread:
  /// any, several at a time.
  void RunBlocks(uint64_t first, uint64_t end, GridBarrier* barrier = nullptr) const;

  [[nodiscard]] bool is_bounded() const { return is_bounded_; }
  [[nodiscard]] uint64_t block_count() const;
  [[nodiscard]] uint64_t block_threads() const;

 private:
  const std::shared_ptr<Image> image_;  // Stays loaded while its code runs.
  const EntryFunction function_;
  const bool is_bounded_;
  std::vector<uint64_t> values_;
  std::vector<void*> params_;
  CpuLaunch launch_;
};

}  // namespace millrace::cpu
