// Fourier transforms by cuFFT.
#pragma once

#include <memory>

#include "cuda/cufft.h"
#include "cuda/library_kernel.h"

namespace millrace::cuda {

/// Makes the library's plan, and loads its kernels. kUnsupported: it does not compute this. May take long. Thread:
/// control.
Result<std::shared_ptr<LibraryKernel>> PlanTransform(const CufftLibrary& library, std::shared_ptr<Context> context,
                                                     const hal::TransformPlan& plan);

}  // namespace millrace::cuda
