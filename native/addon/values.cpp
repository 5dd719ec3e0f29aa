#include "addon/values.h"

#include <string>

#include "hal/system_message.h"

namespace millrace {

ObjectValue& ObjectValue::Set(const char* key, double value) {
  return Set(key, NumberValue(env_, value));
}
ObjectValue& ObjectValue::Set(const char* key, std::string_view value) {
  return Set(key, StringValue(env_, value));
}

napi_value NumberValue(napi_env env, double value) {
  napi_value result = nullptr;
  napi_create_double(env, value, &result);
  return result;
}

napi_value StringValue(napi_env env, std::string_view value) {
  napi_value result = nullptr;
  napi_create_string_utf8(env, value.data(), value.size(), &result);
  return result;
}

napi_value BoolValue(napi_env env, bool value) {
  napi_value result = nullptr;
  napi_get_boolean(env, value, &result);
  return result;
}

napi_value Undefined(napi_env env) {
  napi_value result = nullptr;
  napi_get_undefined(env, &result);
  return result;
}

napi_value NumbersValue(napi_env env, std::span<const double> values) {
  return ArrayValue(env, values, [&](double value) { return NumberValue(env, value); });
}

napi_value FailureValue(napi_env env, const char* what, const Status& status) {
  std::string text = std::string(what) + ": " + status.note();
  if (const std::string said = SystemMessage::Take(status); !said.empty()) text += ": " + said;
  napi_value error = nullptr;
  napi_create_error(env, nullptr, StringValue(env, text), &error);
  napi_set_named_property(env, error, "status", NumberValue(env, static_cast<double>(status.code())));
  napi_set_named_property(env, error, "driverStatus", NumberValue(env, status.driver_code()));
  return error;
}

napi_value ThrowStatus(napi_env env, const char* what, const Status& status) {
  napi_throw(env, FailureValue(env, what, status));
  return nullptr;
}

bool BoolProperty(napi_env env, napi_value object, const char* name) {
  napi_value value;
  bool result = false;
  return napi_get_named_property(env, object, name, &value) == napi_ok &&
         napi_get_value_bool(env, value, &result) == napi_ok && result;
}

bool IsWholeGrowable(napi_env env, napi_value view, uint64_t most_bytes) {
  napi_value buffer = nullptr;
  napi_value most = nullptr;
  size_t offset = 0;
  double bytes = 0;
  return napi_get_typedarray_info(env, view, nullptr, nullptr, nullptr, &buffer, &offset) == napi_ok && offset == 0 &&
         BoolProperty(env, buffer, "growable") &&
         napi_get_named_property(env, buffer, "maxByteLength", &most) == napi_ok &&
         napi_get_value_double(env, most, &bytes) == napi_ok && bytes == static_cast<double>(most_bytes);
}

}  // namespace millrace
