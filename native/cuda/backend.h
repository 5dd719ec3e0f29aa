// The CUDA backend: finds and opens the driver and its devices. Needs no toolkit, and does not link against the driver.
#pragma once

#include <memory>

#include "hal/hal.h"

namespace millrace {

std::unique_ptr<hal::Backend> MakeCudaBackend();

}  // namespace millrace
