// Kills the compilers and removes the temporary folder of a thread when its environment ends while they exist.
//
// worker.terminate(), process.exit() in another thread and an uncaught exception there end an environment without
// running its JavaScript, but they run its clean-up hook. A signal that kills the process runs no hook, so JavaScript
// also starts a guard process (src/toolchain/system/guard-process.ts).
#pragma once

#include <node_api.h>
#include <sys/types.h>

#include <set>
#include <string>

namespace millrace {

class ExitCleanup {
 public:
  /// Adds `keepGroup`, `keepChildren` and `keepFolder` to the exports, for this environment alone.
  static void Define(napi_env env, napi_value exports);

 private:
  static void CleanUp(void* cleanup);
  static napi_value KeepGroup(napi_env env, napi_callback_info info);
  static napi_value KeepChildren(napi_env env, napi_callback_info info);
  static napi_value KeepFolder(napi_env env, napi_callback_info info);

  std::set<pid_t> groups_;  // By the child that leads each group.
  std::set<std::string> folders_;
  /// A thread can be terminated after it started a child and before it called `keepGroup`.
  bool ends_all_children_ = false;
};

}  // namespace millrace
