// Arguments of the exported functions. Only this library's own JavaScript calls them, so a wrong argument is a defect
// there: it throws an error with the function's name. All arguments are checked: numbers are integers in range, and a
// missing argument is wrong.
//
// Node-API calls fail in an environment that is ending. That is not a defect: an unreadable argument counts as wrong,
// and no JavaScript receives the error.
#pragma once

#include <node_api.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "addon/environment.h"
#include "hal/status.h"
#include "runtime/handle_table.h"

namespace millrace {

/// What a function was defined with, where that is not the Environment.
template <typename Self>
Self& SelfOf(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  size_t count = 0;
  napi_get_cb_info(env, info, &count, nullptr, nullptr, &data);
  return *static_cast<Self*>(data);
}

template <size_t N>
class Args {
 public:
  Args(napi_env env, napi_callback_info info) : env_(env) {
    size_t count = N;
    is_ok_ = napi_get_cb_info(env, info, &count, values_.data(), nullptr, &data_) == napi_ok && count >= N &&
             data_ != nullptr;
  }

  [[nodiscard]] bool ok() const { return is_ok_; }
  [[nodiscard]] napi_value operator[](size_t n) const { return values_[n]; }
  /// Call only after ok().
  [[nodiscard]] Environment& self() const { return *static_cast<Environment*>(data_); }

  uint32_t U32(size_t n) { return static_cast<uint32_t>(Whole(n, UINT32_MAX)); }
  /// An integer of at most `last`, such as the largest value of an enumeration.
  uint32_t UpTo(size_t n, uint64_t last) { return static_cast<uint32_t>(Whole(n, last)); }
  /// A ticket or a byte count: an integer below 2^53.
  uint64_t U53(size_t n) { return Whole(n, (uint64_t{1} << 53) - 1); }
  /// A handle from an owner: its generation is not 0.
  uint32_t Handle(size_t n) {
    const uint32_t handle = U32(n);
    Require(HandleGeneration(handle) != 0);
    return handle;
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

  /// The bytes of a Uint8Array, valid during the call.
  std::span<const std::byte> Bytes(size_t n) {
    napi_typedarray_type type = napi_int8_array;
    size_t length = 0;
    void* data = nullptr;
    is_ok_ = is_ok_ && napi_get_typedarray_info(env_, values_[n], &type, &length, &data, nullptr, nullptr) == napi_ok &&
             type == napi_uint8_array;
    return {static_cast<const std::byte*>(data), is_ok_ ? length : 0};
  }
  /// The values of a Float64Array, each an integer below 2^53.
  std::vector<uint64_t> Words(size_t n) {
    napi_typedarray_type type = napi_int8_array;
    size_t length = 0;
    void* data = nullptr;
    Require(napi_get_typedarray_info(env_, values_[n], &type, &length, &data, nullptr, nullptr) == napi_ok &&
            type == napi_float64_array);
    std::vector<uint64_t> words;
    for (size_t at = 0; is_ok_ && at < length; ++at) {
      const double value = static_cast<const double*>(data)[at];
      Require(value >= 0 && value < 0x1p53 && value == std::floor(value));
      if (is_ok_) words.push_back(static_cast<uint64_t>(value));
    }
    return words;
  }
  /// Adds the caller's own check of an argument.
  void Require(bool condition) { is_ok_ = is_ok_ && condition; }

  /// The channel that argument `n` names; null unless this environment is attached to it.
  [[nodiscard]] Channel* Attached(size_t n) {
    const uint32_t id = U32(n);
    return is_ok_ ? self().FindAttached(id) : nullptr;
  }
  /// The channel that argument `n` names; null unless this environment opened it.
  [[nodiscard]] Environment::Controlled* Controlled(size_t n) {
    const uint32_t id = U32(n);
    return is_ok_ ? self().FindControlled(id) : nullptr;
  }

  /// For `if (!args.ok()) return args.Throw("submit");`
  napi_value Throw(const char* function) const {
    const std::string text = std::string(function) + ": wrong arguments";
    napi_throw_type_error(env_, "ERR_MILLRACE_INTERNAL", text.c_str());
    return nullptr;
  }

 private:
  /// An integer from 0 to `last`; otherwise 0, and the arguments are wrong. Node-API's own conversions wrap.
  uint64_t Whole(size_t n, uint64_t last) {
    double value = -1;
    is_ok_ = is_ok_ && napi_get_value_double(env_, values_[n], &value) == napi_ok && value >= 0 &&
             value <= static_cast<double>(last) && value == static_cast<double>(static_cast<uint64_t>(value));
    return is_ok_ ? static_cast<uint64_t>(value) : 0;
  }

  napi_env env_;
  std::array<napi_value, N> values_{};
  void* data_ = nullptr;
  bool is_ok_ = false;
};

}  // namespace millrace
