// Functions for an owner: submission, waiting, failures. Plain Node-API, as the C++ wrapper costs time.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds the owner's functions to the exports. False when the environment is ending.
[[nodiscard]] bool DefineOwner(Environment& self, napi_value exports);

}  // namespace millrace
