// What an owner calls: submission, waiting, failures. Raw Node-API, because a call costs less than the wrapper would.
#pragma once

#include <node_api.h>

namespace millrace {

/// Adds the owner's functions to the exports.
void DefineOwner(napi_env env, napi_value exports);

}  // namespace millrace
