// Modules and kernels of a recording backend.
#pragma once

#include <memory>
#include <string>

#include "hal/hal.h"
#include "recording_memory.h"

namespace millrace::testing {

class RecordingKernel final : public hal::Kernel {
 public:
  explicit RecordingKernel(const hal::KernelLimits& limits) : limits_(limits) {}
  [[nodiscard]] const hal::KernelLimits& limits() const override { return limits_; }
  [[nodiscard]] Result<uint64_t> MaxCooperativeBlocks(uint32_t block_threads, uint32_t shared_bytes) override {
    return uint64_t{limits_.max_cooperative_blocks} * (shared_bytes > 0 ? 1 : 2) / (block_threads > 32 ? 2 : 1);
  }

 private:
  const hal::KernelLimits limits_;
};

/// It has one variable, `counts`, of 16 zero bytes.
class RecordingModule final : public hal::Module {
 public:
  explicit RecordingModule(const hal::KernelLimits& limits) : limits_(limits) {}
  Result<std::shared_ptr<hal::Kernel>> FindKernel(const std::string&, bool, bool) override {
    return std::shared_ptr<hal::Kernel>(new RecordingKernel(limits_));
  }
  Result<std::unique_ptr<hal::Memory>> FindVariable(const std::string& name) override {
    if (name != "counts") return Status(StatusCode::kArgument, "finding a variable");
    return std::unique_ptr<hal::Memory>(new RecordingMemory(16));
  }

 private:
  const hal::KernelLimits limits_;
};

}  // namespace millrace::testing
