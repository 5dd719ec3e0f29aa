// Calls of other code as the node of a graph: what a function of `stream.external` submits in a capture.
#pragma once

#include <memory>

#include "cuda/context.h"
#include "cuda/stream_capture.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// Thread: the caller's, with the context current until it is destroyed.
class CallCapture final : public hal::CallCapture {
 public:
  static Result<std::unique_ptr<hal::CallCapture>> Begin(std::shared_ptr<Context> context);
  ~CallCapture() override;
  CallCapture(const CallCapture&) = delete;
  CallCapture& operator=(const CallCapture&) = delete;

  [[nodiscard]] uint64_t stream() const override;
  [[nodiscard]] Result<std::shared_ptr<hal::Kernel>> End() override;

 private:
  CallCapture(std::shared_ptr<Context> context, std::unique_ptr<StreamCapture> capture)
      : context_(std::move(context)), capture_(std::move(capture)) {}
  const std::shared_ptr<Context> context_;
  const std::unique_ptr<StreamCapture> capture_;
  bool is_over_ = false;
};

}  // namespace millrace::cuda
