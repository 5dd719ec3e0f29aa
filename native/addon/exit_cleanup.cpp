#include "addon/exit_cleanup.h"

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "addon/args.h"

namespace millrace {
namespace {

/// A killed process ends within microseconds, unless it waits inside the kernel, for example for a hung file system.
constexpr auto kDeadline = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::microseconds(200);

ExitCleanup* Of(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  size_t count = 0;
  napi_get_cb_info(env, info, &count, nullptr, nullptr, &data);
  return static_cast<ExitCleanup*>(data);
}

/// False when Node has already waited for the child: another process may then have its pid.
bool IsOurChild(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Calls `is_done` until it returns true, or until the deadline.
template <typename IsDone>
void Await(IsDone is_done) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!is_done() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kPause);
}

}  // namespace

void ExitCleanup::Define(napi_env env, napi_value exports) {
  auto* cleanup = new ExitCleanup();
  const napi_property_descriptor functions[] = {
      {"keepGroup", nullptr, KeepGroup, nullptr, nullptr, nullptr, napi_enumerable, cleanup},
      {"keepFolder", nullptr, KeepFolder, nullptr, nullptr, nullptr, napi_enumerable, cleanup},
  };
  // Node-API fails in an environment that is ending. JavaScript does not call the functions then.
  if (napi_define_properties(env, exports, std::size(functions), functions) != napi_ok ||
      napi_add_env_cleanup_hook(env, CleanUp, cleanup) != napi_ok) {
    delete cleanup;
  }
}

napi_value ExitCleanup::KeepGroup(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const uint32_t pid = args.U32(0);
  const bool is_running = args.Bool(1);
  args.Require(pid > 1 && pid <= INT32_MAX);
  if (!args.ok()) return args.Throw("keepGroup");
  std::set<pid_t>& groups = Of(env, info)->groups_;
  if (is_running) {
    groups.insert(static_cast<pid_t>(pid));
  } else {
    groups.erase(static_cast<pid_t>(pid));
  }
  return nullptr;
}

napi_value ExitCleanup::KeepFolder(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const std::string path = args.String(0);
  const bool is_there = args.Bool(1);
  args.Require(path.starts_with('/'));
  if (!args.ok()) return args.Throw("keepFolder");
  std::set<std::string>& folders = Of(env, info)->folders_;
  if (is_there) {
    folders.insert(path);
  } else {
    folders.erase(path);
  }
  return nullptr;
}

void ExitCleanup::EndGroups() {
  for (const pid_t pid : groups_) {
    if (!IsOurChild(pid)) continue;
    kill(-pid, SIGKILL);
    // Node has closed the handle that would have reaped the child. Without this wait it would stay a zombie until the
    // process ends.
    Await([pid] { return waitpid(pid, nullptr, WNOHANG) != 0; });
    // The other processes of the group are not children of this process. They must have ended before their folder is
    // removed.
    Await([pid] { return kill(-pid, 0) != 0; });
  }
}

void ExitCleanup::CleanUp(void* data) {
  auto* self = static_cast<ExitCleanup*>(data);
  self->EndGroups();
  for (const std::string& folder : self->folders_) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }
  delete self;
}

}  // namespace millrace
