// What a device's worker calls: opening, building, page-locking, closing. Some block; the worker is there for that.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds the control thread's functions to the exports. False when the environment is ending.
[[nodiscard]] bool DefineControl(Environment& self, napi_value exports);

}  // namespace millrace
