#include "addon/telemetry.h"

#include <iterator>
#include <string_view>

#include "addon/args.h"
#include "addon/values.h"
#include "cuda/nvml.h"

namespace millrace {
namespace {

napi_value TelemetryValue(napi_env env, const cuda::GpuTelemetry& read) {
  const struct {
    const char* name;
    const std::optional<double>& value;
  } rows[] = {
      {"busyPercent", read.busy_percent},
      {"memoryBusyPercent", read.memory_busy_percent},
      {"memoryUsedBytes", read.memory_used_bytes},
      {"memoryTotalBytes", read.memory_total_bytes},
      {"graphicsClockMHz", read.graphics_mhz},
      {"smClockMHz", read.sm_mhz},
      {"memoryClockMHz", read.memory_mhz},
      {"temperatureC", read.temperature_c},
      {"powerW", read.power_w},
      {"powerLimitW", read.power_limit_w},
      {"throttleBits", read.throttle_reasons},
  };
  ObjectValue value(env);
  value.Set("uuid", read.uuid).Set("name", read.name).Set("isSlice", BoolValue(env, read.is_slice));
  for (const auto& row : rows) {
    if (row.value) value.Set(row.name, *row.value);
  }
  return value
      .Set("xids",
           ArrayValue(
               env, read.xids,
               [&](const cuda::XidError& xid) {
                 return ObjectValue(env).Set("code", static_cast<double>(xid.code)).Set("agoMs", xid.ago_ms).value();
               }))
      .value();
}

napi_value Telemetry(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  if (!args.ok()) return args.Throw("telemetry");
  if (controlled == nullptr) return NotControlled(env, "telemetry");
  if (controlled->channel->backend().name() != std::string_view("cuda")) {
    return ThrowStatus(env, "telemetry", {StatusCode::kUnsupported, "the device is no GPU"});
  }
  Result<cuda::GpuTelemetry> read = cuda::TelemetryOf(controlled->channel->info().ordinal);
  return read.ok() ? TelemetryValue(env, read.value()) : ThrowStatus(env, "telemetry", read.status());
}

napi_value AllTelemetry(napi_env env, napi_callback_info) {
  Result<std::vector<cuda::GpuTelemetry>> all = cuda::TelemetryOfAll();
  if (!all.ok()) return ThrowStatus(env, "allTelemetry", all.status());
  return ArrayValue(env, all.value(), [&](const cuda::GpuTelemetry& read) { return TelemetryValue(env, read); });
}

}  // namespace

bool DefineTelemetry(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("telemetry", Telemetry),
      self.Function("allTelemetry", AllTelemetry),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
