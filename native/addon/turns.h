// Turns of the process: work that takes a core, such as a compiler, runs only while its environment has one. There are
// as many as the callers say, over all environments, and they are given in the order in which they were asked for.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <memory>

#include "addon/port.h"

namespace millrace {

/// An environment's turns.
class Turns {
 public:
  /// Adds `openTurns`, `takeTurn`, `grantedTurns` and `giveTurn` to the exports, for this environment alone.
  static void Define(napi_env env, napi_value exports);

 private:
  friend struct AllTurns;

  static void CleanUp(void* turns);
  static napi_value Open(napi_env env, napi_callback_info info);
  static napi_value Take(napi_env env, napi_callback_info info);
  static napi_value Granted(napi_env env, napi_callback_info info);
  static napi_value Give(napi_env env, napi_callback_info info);

  // Guarded by the mutex of all turns.
  uint32_t held_ = 0;
  uint32_t granted_ = 0;  // Of those held, what JavaScript has not heard of.
  std::shared_ptr<Port> port_;
};

}  // namespace millrace
