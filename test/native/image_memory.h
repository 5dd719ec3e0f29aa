// Calls kernels of an image on a stack, and with variables, as the CPU device does.
#pragma once

#include <cstdlib>
#include <memory>

#include "cpu/image_variables.h"
#include "cpu/kernel_memory.h"

namespace millrace::testing {

/// Thread: any.
class ImageMemory {
 public:
  /// Null: no image.
  explicit ImageMemory(void* library = nullptr) {
    if (library == nullptr) return;
    auto found = cpu::ImageVariables::Of(library);
    if (!found.ok()) std::abort();
    variables_ = std::move(found).value();
  }
  void Call(MrEntry entry, const MrLaunch& launch, unsigned long long first, unsigned long long end) const {
    if (variables_ == nullptr) return entry(&launch, first, end);
    thread_local cpu::KernelMemory memory;
    if (!memory.Map() || !memory.Prepare(*variables_)) std::abort();
    MrLaunch with_stacks = launch;
    with_stacks.take_stacks = [](void*, unsigned count, unsigned long long bytes) {
      std::byte* const stacks = memory.TakeStacks(count, bytes);
      if (stacks == nullptr) std::abort();
      return reinterpret_cast<char*>(stacks);
    };
    memory.Call(entry, with_stacks, first, end);
  }

 private:
  std::shared_ptr<cpu::ImageVariables> variables_;
};

}  // namespace millrace::testing
