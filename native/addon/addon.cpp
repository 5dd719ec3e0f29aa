// Entry point of the addon: makes the backends known to the runtime, and initialises the addon when Node loads it into
// an environment. Only this file includes both backends.

#include <node_api.h>

#include <iterator>
#include <mutex>

#include "addon/args.h"
#include "addon/compiler_slots.h"
#include "addon/control.h"
#include "addon/device_calls.h"
#include "addon/environment.h"
#include "addon/exit_cleanup.h"
#include "addon/host_memory.h"
#include "addon/libraries.h"
#include "addon/nvtx.h"
#include "addon/owner.h"
#include "addon/remote_owner.h"
#include "addon/telemetry.h"
#include "addon/values.h"
#include "cpu/backend.h"
#include "cuda/backend.h"
#include "runtime/nvtx.h"
#include "runtime/registry.h"

namespace millrace {
namespace {

void AddBackends() {
  static std::once_flag once;
  std::call_once(once, [] {
    Registry::Instance().AddBackend(MakeCudaBackend());
    Registry::Instance().AddBackend(MakeCpuBackend());
  });
}

napi_value ProtocolHash(napi_env env, napi_callback_info) {
  return StringValue(env, protocol::kHash);
}

napi_value AdjustExternalMemory(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const auto bytes = static_cast<int64_t>(args.U53(0));
  const bool is_more = args.Bool(1);
  if (!args.ok()) return args.Throw("adjustExternalMemory");
  int64_t total = 0;
  napi_adjust_external_memory(env, is_more ? bytes : -bytes, &total);
  return nullptr;
}

napi_value Initialize(napi_env env, napi_value exports) {
  nvtx::Load();
  AddBackends();
  auto* environment = new Environment(env);
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Environment*>(data); };
  if (napi_set_instance_data(env, environment, finalize, nullptr) != napi_ok) {
    delete environment;
    return nullptr;
  }
  // Each of these fails when the environment is ending, at any point; no JavaScript runs in it then.
  if (napi_add_env_cleanup_hook(env, Environment::CleanUp, environment) != napi_ok) return nullptr;
  const napi_property_descriptor functions[] = {
      environment->Function("protocolHash", ProtocolHash),
      environment->Function("adjustExternalMemory", AdjustExternalMemory),
  };
  const bool is_defined = napi_define_properties(env, exports, std::size(functions), functions) == napi_ok &&
                          DefineOwner(*environment, exports) && DefineRemoteOwner(*environment, exports) &&
                          DefineControl(*environment, exports) && DefineLibraries(*environment, exports) &&
                          DefineTelemetry(*environment, exports) && DefineNvtx(*environment, exports) &&
                          DefineDeviceCalls(*environment, exports) && DefineHostMemory(*environment, exports);
  if (!is_defined) return nullptr;
  ExitCleanup::Define(env, exports);
  CompilerSlots::Define(env, exports);
  return exports;
}

}  // namespace
}  // namespace millrace

NAPI_MODULE_INIT() {
  return millrace::Initialize(env, exports);
}
