// Products of matrices by cuBLASLt.
#pragma once

#include <memory>
#include <mutex>

#include "cuda/cublaslt.h"
#include "cuda/library_kernel.h"

namespace millrace::cuda {

/// The library's handle for one device.
class CublasLt {
 public:
  /// kUnavailable where the library is not installed. May take long. Thread: control.
  static Result<std::shared_ptr<CublasLt>> Open(std::shared_ptr<Context> context);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  [[nodiscard]] const CublasLtTable& functions() const { return library_.functions; }
  [[nodiscard]] const hal::LibraryInfo& info() const { return library_.info; }
  [[nodiscard]] CublasLtHandle handle() const { return handle_; }
  [[nodiscard]] const std::shared_ptr<Context>& context() const { return context_; }

 private:
  CublasLt(const CublasLtLibrary& library, std::shared_ptr<Context> context)
      : library_(library), context_(std::move(context)) {}
  const CublasLtLibrary& library_;
  const std::shared_ptr<Context> context_;
  CublasLtHandle handle_ = nullptr;
};

/// Asks the library how it would multiply, and loads the kernels that it names. kUnsupported: it has none. May take
/// long. Thread: control.
Result<std::shared_ptr<LibraryKernel>> PlanMatmul(std::shared_ptr<CublasLt> library, const hal::MatmulPlan& plan);

}  // namespace millrace::cuda
