// What a device's worker calls: opening, building, page-locking, closing. Some block; the worker is there for that.
#pragma once

#include <node_api.h>

namespace millrace {

/// Adds the control thread's functions to the exports.
void DefineControl(napi_env env, napi_value exports);

}  // namespace millrace
