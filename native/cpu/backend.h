// The CPU backend: what the library runs on where there is no GPU, and the reference that results are compared with.
//
// Its devices obey the same contract as a GPU: launches are asynchronous, a stream is a FIFO, streams run side by side,
// and nothing orders them but waits. MILLRACE_CPU_DEVICES makes several of one machine (1 to 16, 1 by default), so that
// programs for many devices can be tried anywhere; each has its own threads and its own budget of memory.
#pragma once

#include <memory>

#include "hal/hal.h"

namespace millrace {

[[nodiscard]] std::unique_ptr<hal::Backend> MakeCpuBackend();

}  // namespace millrace
