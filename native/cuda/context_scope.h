// Makes a context current for a scope on any thread. On the channel thread, whose context is always current, this costs
// one cheap call.
#pragma once

#include "cuda/driver.h"

namespace millrace::cuda {

class ContextScope {
 public:
  explicit ContextScope(CUcontext context) {
    if (Cuda().cuCtxGetCurrent(&before_) == CUDA_SUCCESS && before_ == context) return;
    code_ = Cuda().cuCtxPushCurrent(context);
    // The call may tell the failure of an earlier one. What a scope is to give back would stay if it were not asked
    // again; a loss is told again.
    if (code_ != CUDA_SUCCESS) code_ = Cuda().cuCtxPushCurrent(context);
    is_pushed_ = code_ == CUDA_SUCCESS;
  }

  ~ContextScope() {
    CUcontext popped = nullptr;
    // A channel's thread relies on the context below.
    if (is_pushed_ && Cuda().cuCtxPopCurrent(&popped) != CUDA_SUCCESS) Cuda().cuCtxSetCurrent(before_);
  }

  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  /// The error if the context could not be made current; it must not be used then.
  [[nodiscard]] CUresult code() const { return code_; }

 private:
  CUcontext before_ = nullptr;
  CUresult code_ = CUDA_SUCCESS;
  bool is_pushed_ = false;
};

}  // namespace millrace::cuda
