// NVIDIA's libraries that take the place of kernels. Thread: any.
#pragma once

#include <vector>

#include "hal/library_plan.h"

namespace millrace::cuda {

/// Those that are installed. The first call opens them, which takes some milliseconds.
std::vector<hal::LibraryInfo> FindLibraries();

/// Whether there is a file that a library of Fourier transforms may be opened from. Opens nothing.
bool HasTransforms();

}  // namespace millrace::cuda
