// The variables of thread storage duration of a loaded image: its `__shared__` variables, and those of the shim. Each
// thread has memory of its own for them (kernel_memory.h). See shim/thread_variables.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "hal/status.h"

namespace millrace::cpu {

/// A thread's memory for kernels (kernel_memory.h) begins at a multiple of this.
inline constexpr uint64_t kKernelMemorySpan = 8ull << 30;
/// From there to the variables of all images, of which the shim's come first.
inline constexpr uint64_t kOwnVariables = 1 << 30;
/// Most bytes of the variables of all loaded images together.
inline constexpr uint64_t kMostVariableBytes = 512 << 20;

/// Thread: any.
class ImageVariables {
 public:
  /// Null for an image that was compiled without the shim. All loads of a file share this object, which must be
  /// destroyed before the library is closed. Status kState if another copy of this library has loaded the file, or if
  /// another thread is about to close it.
  [[nodiscard]] static Result<std::shared_ptr<ImageVariables>> Of(void* library);
  ~ImageVariables();
  ImageVariables(const ImageVariables&) = delete;
  ImageVariables& operator=(const ImageVariables&) = delete;

  /// No other image has had it.
  [[nodiscard]] uint64_t number() const { return number_; }
  /// Of both the shim's and the shared variables, from the start of their area.
  [[nodiscard]] uint64_t first() const { return first_; }
  [[nodiscard]] uint64_t end() const { return first_ + bytes_; }
  /// The shim's variables; shared ones are zero.
  [[nodiscard]] std::span<const std::byte> initial() const { return initial_; }

 private:
  ImageVariables() = default;

  void* library_ = nullptr;
  unsigned long long* mask_ = nullptr;
  uint64_t number_ = 0;
  uint64_t first_ = 0;
  uint64_t bytes_ = 0;
  std::span<const std::byte> initial_;
};

}  // namespace millrace::cpu
