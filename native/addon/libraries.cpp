#include "addon/libraries.h"

#include <optional>

#include "addon/args.h"
#include "addon/environment.h"
#include "addon/values.h"
#include "cuda/libraries.h"

namespace millrace {
namespace {

napi_value LibraryValue(napi_env env, const hal::LibraryInfo& info) {
  return ObjectValue(env).Set("name", info.name).Set("version", info.version).Set("path", info.path).value();
}

napi_value InstallPlan(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  const uint32_t handle = args.Handle(1);
  const std::optional<hal::LibraryPlan> plan = hal::ReadPlan(args.Words(2));
  args.Require(plan.has_value());
  if (!args.ok()) return args.Throw("installPlan");
  if (controlled == nullptr) return NotControlled(env, "installPlan");
  auto installed = controlled->channel->InstallPlan(handle, *plan);
  if (!installed.ok()) return ThrowFailure(env, *controlled->channel, "installPlan", installed.status());
  return LibraryValue(env, installed.value());
}

napi_value Libraries(napi_env env, napi_callback_info) {
  return ArrayValue(env, cuda::FindLibraries(), [&](const hal::LibraryInfo& info) { return LibraryValue(env, info); });
}

napi_value HasCufft(napi_env env, napi_callback_info) {
  return BoolValue(env, cuda::HasTransforms());
}

}  // namespace

bool DefineLibraries(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("installPlan", InstallPlan),
      self.Function("libraries", Libraries),
      self.Function("hasCufft", HasCufft),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
