// Launches from kernels, on the fake driver: one grid after the other.
#pragma once

#include "device_code.h"

namespace millrace::fake_cuda {

/// Runs a grid and all that its kernels launch: what is on no stream of its end in the order of the launches, then the
/// tails. Dynamic shared memory of each is its own.
void RunLaunchTree(Entry entry, const CpuLaunch& shape);

}  // namespace millrace::fake_cuda
