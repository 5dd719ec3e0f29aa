// Functions for a device's worker: opening, building, page-locking, closing. Some block, which the worker allows.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds the control thread's functions to the exports. False when the environment is ending.
[[nodiscard]] bool DefineControl(Environment& self, napi_value exports);

}  // namespace millrace
