// The CUDA backend: finds the driver and its devices, and opens them. Needs no toolkit, and no driver to be linked.
#pragma once

#include <memory>

#include "hal/hal.h"

namespace millrace {

std::unique_ptr<hal::Backend> MakeCudaBackend();

}  // namespace millrace
