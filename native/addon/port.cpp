#include "addon/port.h"

#include <utility>

namespace millrace {

std::shared_ptr<Port> Port::Open(napi_env env, napi_value on_wake) {
  auto port = std::make_shared<Port>();
  napi_value name;
  if (napi_create_string_utf8(env, "millrace port", NAPI_AUTO_LENGTH, &name) != napi_ok) return nullptr;
  // The function keeps its port alive until Node finalises it, after which no call is in progress.
  auto* held = new std::shared_ptr<Port>(port);
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<std::shared_ptr<Port>*>(data); };
  if (napi_create_threadsafe_function(env, on_wake, nullptr, name, 0, 1, held, finalize, port.get(), CallJs,
                                      &port->function_) != napi_ok) {
    delete held;
    return nullptr;
  }
  napi_unref_threadsafe_function(env, port->function_);
  return port;
}

void Port::Ring() noexcept {
  // The caller stores data, then fences, then exchanges the flag; CallJs clears the flag, then loads. So either the
  // exchange sees the flag cleared, or JavaScript sees the data.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (is_rung_.exchange(true, std::memory_order_acq_rel)) return;
  std::lock_guard lock(mutex_);
  if (function_ != nullptr) napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking);
}

void Port::CallJs(napi_env env, napi_value on_wake, void* context, void*) {
  // Cleared before JavaScript reads the words, so that later writes ring again. Sequentially consistent, because a
  // later load must not move before this store: a ring that still saw the flag set would be lost.
  static_cast<Port*>(context)->is_rung_.store(false, std::memory_order_seq_cst);
  if (env == nullptr) return;
  napi_value undefined;
  if (napi_get_undefined(env, &undefined) != napi_ok) return;
  // Node reports a pending exception of the callback.
  napi_call_function(env, undefined, on_wake, 0, nullptr, nullptr);
}

void Port::Ref(napi_env env, bool on) {
  std::lock_guard lock(mutex_);
  if (function_ == nullptr) return;
  if (on) {
    napi_ref_threadsafe_function(env, function_);
  } else {
    napi_unref_threadsafe_function(env, function_);
  }
}

void Port::Close() {
  napi_threadsafe_function function;
  {
    std::lock_guard lock(mutex_);
    function = std::exchange(function_, nullptr);
  }
  if (function != nullptr) napi_release_threadsafe_function(function, napi_tsfn_abort);
}

}  // namespace millrace
