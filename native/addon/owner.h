// What an owner calls: submission, waiting, failures. Raw Node-API, because a call costs less than the wrapper would.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds the owner's functions to the exports. False when the environment is ending.
[[nodiscard]] bool DefineOwner(Environment& self, napi_value exports);

}  // namespace millrace
