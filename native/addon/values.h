// Builds the JavaScript values that calls return, and throws failed statuses. Names follow src/native/binding.ts.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "hal/status.h"

namespace millrace {

/// An object under construction. Node-API calls fail only in an ending environment, in which no JavaScript runs.
class ObjectValue {
 public:
  explicit ObjectValue(napi_env env) : env_(env) { napi_create_object(env, &value_); }
  ObjectValue& Set(const char* key, napi_value value) {
    napi_set_named_property(env_, value_, key, value);
    return *this;
  }
  ObjectValue& Set(const char* key, double value);
  ObjectValue& Set(const char* key, std::string_view value);
  [[nodiscard]] napi_value value() const { return value_; }

 private:
  napi_env env_;
  napi_value value_ = nullptr;
};

napi_value NumberValue(napi_env env, double value);
napi_value StringValue(napi_env env, std::string_view value);
napi_value BoolValue(napi_env env, bool value);
napi_value Undefined(napi_env env);
napi_value NumbersValue(napi_env env, std::span<const double> values);

/// An array of what `make(item)` returns for each item.
template <typename Items, typename Make>
napi_value ArrayValue(napi_env env, const Items& items, Make make) {
  napi_value array = nullptr;
  napi_create_array_with_length(env, items.size(), &array);
  uint32_t index = 0;
  for (const auto& item : items) napi_set_element(env, array, index++, make(item));
  return array;
}

/// The Error for a failed status: binding.ts's NativeFailure.
napi_value FailureValue(napi_env env, const char* what, const Status& status);
/// Throws it and returns null, for `return ThrowStatus(...)`.
napi_value ThrowStatus(napi_env env, const char* what, const Status& status);

/// A boolean property of an object; false where it is no boolean.
bool BoolProperty(napi_env env, napi_value object, const char* name);

/// Whether `view` begins with the first byte of a growable SharedArrayBuffer that may have so many.
bool IsWholeGrowable(napi_env env, napi_value view, uint64_t most_bytes);

}  // namespace millrace
