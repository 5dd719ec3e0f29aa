#include "addon/exit_cleanup.h"

#include <chrono>
#include <utility>

#include "addon/args.h"
#include "addon/child_processes.h"

namespace millrace {
namespace {

/// How long the end of an environment waits for its killed children.
constexpr auto kDeadline = std::chrono::milliseconds(100);

}  // namespace

void ExitCleanup::Define(napi_env env, napi_value exports) {
  auto* cleanup = new ExitCleanup();
  const napi_property_descriptor functions[] = {
      {"keepGroup", nullptr, KeepGroup, nullptr, nullptr, nullptr, napi_enumerable, cleanup},
      {"keepChildren", nullptr, KeepChildren, nullptr, nullptr, nullptr, napi_enumerable, cleanup},
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
  std::set<pid_t>& groups = SelfOf<ExitCleanup>(env, info).groups_;
  if (is_running) {
    groups.insert(static_cast<pid_t>(pid));
  } else {
    groups.erase(static_cast<pid_t>(pid));
  }
  return nullptr;
}

napi_value ExitCleanup::KeepChildren(napi_env env, napi_callback_info info) {
  SelfOf<ExitCleanup>(env, info).ends_all_children_ = true;
  return nullptr;
}

napi_value ExitCleanup::KeepFolder(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const std::string path = args.String(0);
  const bool is_there = args.Bool(1);
  args.Require(path.starts_with('/'));
  if (!args.ok()) return args.Throw("keepFolder");
  std::set<std::string>& folders = SelfOf<ExitCleanup>(env, info).folders_;
  if (is_there) {
    folders.insert(path);
  } else {
    folders.erase(path);
  }
  return nullptr;
}

void ExitCleanup::CleanUp(void* data) {
  auto* self = static_cast<ExitCleanup*>(data);
  // Node has closed the handles that would have reaped these children.
  std::set<pid_t> leaders = std::move(self->groups_);
  if (self->ends_all_children_) leaders.merge(LeadersStartedByThisThread());
  EndChildren(std::move(leaders), std::move(self->folders_), kDeadline);
  delete self;
}

}  // namespace millrace
