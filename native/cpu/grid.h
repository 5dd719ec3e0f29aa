// One launch on the CPU: blocks that may spread over the pool.
#pragma once

#include <cstdint>

#include "cpu/grid_call.h"
#include "cpu/spread.h"

namespace millrace::cpu {

class Grid final : public Spread {
 public:
  Grid(const hal::LaunchRequest& request, int32_t priority);

  [[nodiscard]] bool IsLight() const override;

 private:
  Grid(GridCall call, int32_t priority) : Spread(call.block_count(), priority), call_(std::move(call)) {}
  void RunBlocks(uint64_t first, uint64_t end) override { call_.RunBlocks(first, end); }

  const GridCall call_;
};

}  // namespace millrace::cpu
