#include "addon/nvtx.h"

#include <iterator>

#include "addon/args.h"
#include "addon/values.h"
#include "runtime/nvtx.h"

namespace millrace {
namespace {

napi_value NvtxState(napi_env env, napi_callback_info) {
  const std::optional<std::string> state = nvtx::State();
  return state ? StringValue(env, *state) : nullptr;
}

napi_value NvtxLabel(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const std::string name = args.String(0);
  if (!args.ok()) return args.Throw("nvtxLabel");
  return NumberValue(env, nvtx::Label(name));
}

napi_value NvtxStart(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const std::string name = args.String(0);
  if (!args.ok()) return args.Throw("nvtxStart");
  return NumberValue(env, nvtx::Start(name));
}

napi_value NvtxEnd(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t range = args.U32(0);
  if (!args.ok()) return args.Throw("nvtxEnd");
  nvtx::End(range);
  return nullptr;
}

}  // namespace

bool DefineNvtx(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("nvtxState", NvtxState),
      self.Function("nvtxLabel", NvtxLabel),
      self.Function("nvtxStart", NvtxStart),
      self.Function("nvtxEnd", NvtxEnd),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
