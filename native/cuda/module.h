// Loaded images and the functions in them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// A function of a module. The module is its own: it is unloaded with the function, and left alone after a loss.
class Kernel final : public hal::Kernel {
 public:
  /// `image` is a cubin or a fat binary, or PTX, which the driver then compiles. Thread: any. May take long.
  static Result<std::shared_ptr<Kernel>> Load(std::shared_ptr<Context> context, std::span<const std::byte> image,
                                              const std::string& entry);
  ~Kernel() override;

  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  [[nodiscard]] CUfunction function() const { return function_; }
  [[nodiscard]] Context* context() const { return context_.get(); }

  /// More dynamic shared memory than a function may use by default has to be asked for. Thread: channel.
  Status AllowShared(uint32_t bytes);

 private:
  Kernel(std::shared_ptr<Context> context, CUmodule module) : context_(std::move(context)), module_(module) {}

  const std::shared_ptr<Context> context_;
  const CUmodule module_;
  CUfunction function_ = nullptr;
  uint32_t allowed_shared_ = 0;  // Bytes.
};

}  // namespace millrace::cuda
