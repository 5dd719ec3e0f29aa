// Launches from kernels on the fake driver: one grid after the other.
#pragma once

#include "../image_memory.h"
#include "device_code.h"

namespace millrace::fake_cuda {

/// Runs a grid and its child launches: first those outside the tail stream, in launch order, then the tail launches.
/// Each has its own dynamic shared memory.
void RunLaunchTree(MrEntry entry, const MrLaunch& shape, const testing::ImageMemory& image);

}  // namespace millrace::fake_cuda
