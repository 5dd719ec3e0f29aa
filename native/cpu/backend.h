// The CPU backend: runs the library on machines without a GPU, and is the reference for results.
//
// Its devices follow the same contract as a GPU: launches are asynchronous, a stream is a FIFO, streams run
// concurrently, and only waits order them. MILLRACE_CPU_DEVICES sets their number (1 to 16, default 1), so that code
// for several devices runs anywhere; each device has its own threads and its own memory budget.
#pragma once

#include <memory>

#include "hal/hal.h"

namespace millrace {

[[nodiscard]] std::unique_ptr<hal::Backend> MakeCpuBackend();

}  // namespace millrace
