// A kernel launch as an item of a CPU stream: its parts, the blocks, may run on several pool threads.
#pragma once

#include <cstdint>

#include "cpu/grid_call.h"
#include "cpu/parallel_item.h"

namespace millrace::cpu {

/// The device's limits of a block, and of the number of blocks.
struct GridLimits {
  uint32_t threads = 0;
  uint32_t block[3] = {0, 0, 0};
  uint32_t grid[3] = {0, 0, 0};
  uint32_t shared_bytes = 0;
};

class LaunchItem : public ParallelItem {
 public:
  LaunchItem(const hal::LaunchRequest& request, int32_t priority);

  [[nodiscard]] bool IsLight() const override;
  [[nodiscard]] bool IsLong() const final { return call_.is_long(); }
  [[nodiscard]] std::optional<hal::KernelFailure> Failure() const final { return call_.FailureOf(fault()); }
  void Prepare(const Cancellation& cancellation, int32_t priority) final;
  void SetParam(size_t index, uint64_t value) { call_.SetParam(index, value); }
  [[nodiscard]] bool HasFailed() const { return fault().IsNoted(); }
  [[nodiscard]] bool IsOneBlock() const { return block_count() == 1; }

 protected:
  LaunchItem(GridCall call, int32_t priority) : ParallelItem(call.block_count(), priority), call_(std::move(call)) {}
  [[nodiscard]] const GridCall& call() const { return call_; }
  /// The fault of the launch that this grid belongs to.
  [[nodiscard]] virtual const LaunchFault& fault() const { return fault_; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override {
    call_.RunBlocks(first, end, fault_, {.cancellation = cancellation()});
  }

  GridCall call_;
  LaunchFault fault_;
};

}  // namespace millrace::cpu
