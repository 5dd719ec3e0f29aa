// The functions of the addon that name things for NVTX tools.
#pragma once

#include <node_api.h>

#include "addon/environment.h"

namespace millrace {

[[nodiscard]] bool DefineNvtx(Environment& environment, napi_value exports);

}  // namespace millrace
