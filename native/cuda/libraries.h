// NVIDIA's libraries that take the place of kernels. Thread: any.
#pragma once

#include <vector>

#include "hal/library_plan.h"

namespace millrace::cuda {

/// Those that are installed. The first call opens them, which takes some milliseconds.
std::vector<hal::LibraryInfo> FindLibraries();

}  // namespace millrace::cuda
