// What the builds of a thread would leave behind when it ends while they run: groups of processes, and a folder.
//
// An environment ends in ways that run no JavaScript: worker.terminate(), process.exit() in another thread, an uncaught
// exception there. Its clean-up hook runs in all of them. Only a signal that ends the process runs none, which is why
// JavaScript also starts a guard (src/build/compilers/guard.ts).
#pragma once

#include <node_api.h>
#include <sys/types.h>

#include <set>
#include <string>

namespace millrace {

class Leftovers {
 public:
  /// Adds `keepGroup` and `keepFolder` to the exports, for this environment alone.
  static void Define(napi_env env, napi_value exports);

 private:
  static void CleanUp(void* leftovers);
  static napi_value KeepGroup(napi_env env, napi_callback_info info);
  static napi_value KeepFolder(napi_env env, napi_callback_info info);

  void EndGroups();

  std::set<pid_t> groups_;  // By the child that leads each.
  std::set<std::string> folders_;
};

}  // namespace millrace
