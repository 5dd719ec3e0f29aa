// Arguments of the exported functions. Only this library's own JavaScript calls them, so a wrong one is a defect there:
// it is thrown as such, with the function's name.
#pragma once

#include <node_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "hal/status.h"

namespace millrace {

template <size_t N>
class Args {
 public:
  Args(napi_env env, napi_callback_info info) : env_(env) {
    size_t count = N;
    is_ok_ = napi_get_cb_info(env, info, &count, values_.data(), nullptr, nullptr) == napi_ok && count >= N;
  }

  [[nodiscard]] bool ok() const { return is_ok_; }
  [[nodiscard]] napi_value operator[](size_t n) const { return values_[n]; }

  uint32_t U32(size_t n) {
    uint32_t value = 0;
    is_ok_ = is_ok_ && napi_get_value_uint32(env_, values_[n], &value) == napi_ok;
    return value;
  }
  /// A ticket or a byte count: an integer below 2^53.
  uint64_t U53(size_t n) {
    int64_t value = 0;
    is_ok_ = is_ok_ && napi_get_value_int64(env_, values_[n], &value) == napi_ok && value >= 0;
    return static_cast<uint64_t>(value);
  }
  bool Bool(size_t n) {
    bool value = false;
    is_ok_ = is_ok_ && napi_get_value_bool(env_, values_[n], &value) == napi_ok;
    return value;
  }
  std::string String(size_t n) {
    size_t length = 0;
    is_ok_ = is_ok_ && napi_get_value_string_utf8(env_, values_[n], nullptr, 0, &length) == napi_ok;
    if (!is_ok_) return {};
    std::string text(length, '\0');
    is_ok_ = napi_get_value_string_utf8(env_, values_[n], text.data(), length + 1, &length) == napi_ok;
    return text;
  }

  /// A Uint8Array's bytes, valid during the call.
  std::span<const std::byte> Bytes(size_t n) {
    napi_typedarray_type type = napi_int8_array;
    size_t length = 0;
    void* data = nullptr;
    is_ok_ = is_ok_ && napi_get_typedarray_info(env_, values_[n], &type, &length, &data, nullptr, nullptr) == napi_ok &&
             type == napi_uint8_array;
    return {static_cast<const std::byte*>(data), is_ok_ ? length : 0};
  }
  /// What the caller found of an argument.
  void Require(bool condition) { is_ok_ = is_ok_ && condition; }

  /// For `if (!args.ok()) return args.Throw("submit");`
  napi_value Throw(const char* function) const {
    const std::string text = std::string(function) + ": wrong arguments";
    napi_throw_type_error(env_, "ERR_MILLRACE_INTERNAL", text.c_str());
    return nullptr;
  }

 private:
  napi_env env_;
  std::array<napi_value, N> values_{};
  bool is_ok_ = false;
};

}  // namespace millrace
