// The functions of an owner whose device is in another process.
#pragma once

#include "addon/environment.h"

namespace millrace {

/// False when Node refuses.
[[nodiscard]] bool DefineRemoteOwner(Environment& self, napi_value exports);

}  // namespace millrace
