// Functions about libraries of the machine that work in the place of kernels.
#pragma once

#include <node_api.h>

#include "addon/environment.h"
#include "hal/caps.h"

namespace millrace {

[[nodiscard]] napi_value LibraryValue(napi_env env, const hal::LibraryInfo& info);
/// Adds them to the exports. False when the environment is ending.
[[nodiscard]] bool DefineLibraries(Environment& self, napi_value exports);

}  // namespace millrace
