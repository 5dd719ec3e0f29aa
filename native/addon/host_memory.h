// Functions for host memory: pages that are mapped twice, copies by several threads, huge pages.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds the functions to the exports. False when the environment is ending.
[[nodiscard]] bool DefineHostMemory(Environment& self, napi_value exports);

}  // namespace millrace
