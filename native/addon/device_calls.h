// Requests from owners to their device's worker, because the driver may block: the pool, peers, events, other
// processes. src/core/channel/control.ts documents each one.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds these functions to the exports. False when the environment is ending.
[[nodiscard]] bool DefineDeviceCalls(Environment& self, napi_value exports);

}  // namespace millrace
