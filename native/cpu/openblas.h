// Products of matrices by OpenBLAS, if the environment asks for it (decision 0079). The library starts no thread of its
// own for them: the blocks of a launch are tiles of the result, which the threads of the device multiply.
#pragma once

#include <memory>
#include <string>

#include "cpu/module.h"
#include "hal/library_plan.h"

namespace millrace::cpu {

class OpenBlas {
 public:
  /// The library that MILLRACE_OPENBLAS names: a path, or `1` for the one that the loader finds. Null if it names none.
  /// kUnavailable: there is no such library, or it cannot be used. Thread: control. May take long.
  [[nodiscard]] static Result<std::shared_ptr<const OpenBlas>> FromEnvironment();

  [[nodiscard]] const hal::LibraryInfo& info() const { return info_; }
  /// A kernel that makes the products, on a device of so many threads. kUnsupported for other types than f32 and f64.
  [[nodiscard]] Result<std::shared_ptr<hal::Kernel>> Plan(const hal::MatmulPlan& plan, uint32_t threads) const;

 private:
  [[nodiscard]] static Result<std::shared_ptr<const OpenBlas>> Open(const std::string& path);

  std::shared_ptr<Image> image_;
  void* sgemm_ = nullptr;
  void* dgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  hal::LibraryInfo info_;
};

}  // namespace millrace::cpu
