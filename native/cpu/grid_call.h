// The call of a launch: the image's entry point with its own copy of the arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpu/cancellation.h"
#include "cpu/grid_barrier.h"
#include "cpu/kernel_fault.h"
#include "cpu/memory.h"
#include "cpu/module.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// The number of blocks of a grid, or of threads of a block, with these extents.
inline uint64_t Product(const unsigned (&dim)[3]) {
  return uint64_t{dim[0]} * dim[1] * dim[2];
}

/// The context of a run of blocks.
struct RunOfBlocks {
  /// The grid barrier; null when the launch is not cooperative.
  GridBarrier* barrier = nullptr;
  /// Receives the launches of the blocks; null when the kernel launches none.
  MrLauncher* launcher = nullptr;
  /// Checked before each block.
  Cancellation cancellation = {};
};

class GridCall {
 public:
  /// Copies the parameters. `request.params` has as many entries as the kernel takes.
  explicit GridCall(const hal::LaunchRequest& request);
  /// For a launch by a kernel of `parent`, from the same image.
  GridCall(const GridCall& parent, const MrChild& child);
  // `params_` points to the arguments.
  GridCall(GridCall&&) = default;

  /// Runs the blocks [first, end). Thread: any, several at a time. `fault` receives a kernel that had to stop; after
  /// that, no further blocks run.
  void RunBlocks(uint64_t first, uint64_t end, LaunchFault& fault, const RunOfBlocks& of = {}) const;
  /// Replaces a word of the parameters of a launch that does not run now.
  void SetParam(size_t word, uint64_t value) { values_[word] = value; }
  /// The launch's failure, if any, when all of its blocks have finished.
  [[nodiscard]] std::optional<hal::KernelFailure> FailureOf(const LaunchFault& fault) const;

  [[nodiscard]] bool is_bounded() const { return is_bounded_; }
  /// A block takes longer than to wake a thread.
  [[nodiscard]] bool is_long() const { return is_long_; }
  [[nodiscard]] uint64_t block_count() const;
  [[nodiscard]] uint64_t block_threads() const;
  [[nodiscard]] const MrLaunch& launch() const { return launch_; }

 private:
  /// The parameters, each from the start of a word.
  [[nodiscard]] std::span<const uint64_t> words() const { return values_; }
  struct PointerPlace {
    uint32_t parameter;
    uint32_t offset;  // In a parameter that holds the pointer beside other values.
  };
  /// Where a pointer into the array is.
  [[nodiscard]] PointerPlace PointerTo(const ArrayPlace& array) const;
  /// Turns an access of an address, or the end of a kernel that changed bytes beside an array, into a kGuard.
  void FindStray(KernelExit& exit) const;
  void DescribeStray(const StrayByte& stray, protocol::FaultSlot& report) const;
  static void DescribeShuffle(const MrShuffle& shuffle, protocol::FaultSlot& report);
  void DescribeRace(const RaceReport& race, protocol::FaultSlot& report) const;

  const std::shared_ptr<Image> image_;  // Keeps the image loaded while its code runs.
  const MrEntry function_;
  const std::shared_ptr<void> plan_;  // Of a library's call.
  const bool is_bounded_;
  const bool is_long_ = false;
  const uint32_t kernel_;
  std::vector<uint64_t> values_;  // Each parameter begins a word.
  std::vector<void*> params_;
  MrLaunch launch_;
};

}  // namespace millrace::cpu
