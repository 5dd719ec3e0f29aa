// Headers, besides cuda_on_cpu.h, for kernels whose threads wait; other kernels compile faster without them.
#pragma once

#include "block_threads.h"
#include "warp.h"
