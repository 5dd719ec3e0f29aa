// A counting semaphore of the process: an environment runs a compiler only while it holds a slot. All environments
// share the slots, and get them in the order of their requests.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <memory>

#include "addon/port.h"

namespace millrace {

/// The slots of one environment.
class CompilerSlots {
 public:
  /// Adds `openCompilerSlots`, `takeCompilerSlot`, `grantedCompilerSlots` and `releaseCompilerSlot` to the exports, for
  /// this environment alone.
  static void Define(napi_env env, napi_value exports);

 private:
  friend struct AllTurns;

  static void CleanUp(void* slots);
  static napi_value Open(napi_env env, napi_callback_info info);
  static napi_value Take(napi_env env, napi_callback_info info);
  static napi_value Granted(napi_env env, napi_callback_info info);
  static napi_value Give(napi_env env, napi_callback_info info);

  // Guarded by the mutex of all slots.
  uint32_t held_ = 0;
  uint32_t granted_ = 0;  // Held slots that JavaScript has not been told of.
  std::shared_ptr<Port> port_;
};

}  // namespace millrace
