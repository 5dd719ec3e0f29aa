// One launch on the CPU: blocks that may spread over the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/module.h"
#include "cpu/spread.h"
#include "hal/hal.h"

namespace millrace::cpu {

class Grid final : public Spread {
 public:
  /// Copies the parameters. `request.params` has as many entries as the kernel takes.
  Grid(const hal::LaunchRequest& request, int32_t priority);

  [[nodiscard]] bool IsLight() const override;

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;

  const std::shared_ptr<Image> image_;  // Stays loaded while its code runs.
  const EntryFunction function_;
  const bool is_bounded_;
  const uint64_t block_threads_;
  std::vector<uint64_t> values_;
  std::vector<void*> params_;
  CpuLaunch launch_;
};

}  // namespace millrace::cpu
