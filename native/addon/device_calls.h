// What an owner asks its device's worker, because the driver may take its time: the pool, peers, events, other
// processes. src/core/channel/control.ts says what each is. Each may block.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

/// Adds these functions to the exports. False when the environment is ending.
[[nodiscard]] bool DefineDeviceCalls(Environment& self, napi_value exports);

}  // namespace millrace
