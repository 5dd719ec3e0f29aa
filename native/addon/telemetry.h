// Functions that ask NVML. They take milliseconds, so a device's worker calls them, or a program that does nothing
// else.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds them to the exports. False when the environment is ending.
[[nodiscard]] bool DefineTelemetry(Environment& self, napi_value exports);

}  // namespace millrace
