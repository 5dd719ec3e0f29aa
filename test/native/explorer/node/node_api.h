// The part of Node-API that native/addon/port.cpp calls, for the explorer: a thread-safe function is a count of calls,
// which a thread of the scenario makes as Node's event loop.
#pragma once

#include <cstddef>

#include "explorer/scheduler.h"

extern "C" {
typedef struct napi_env__* napi_env;
typedef struct napi_value__* napi_value;
typedef enum { napi_ok, napi_closing } napi_status;
typedef enum { napi_tsfn_release, napi_tsfn_abort } napi_threadsafe_function_release_mode;
typedef enum { napi_tsfn_nonblocking, napi_tsfn_blocking } napi_threadsafe_function_call_mode;
typedef void (*napi_finalize)(napi_env, void*, void*);
typedef void (*napi_threadsafe_function_call_js)(napi_env, napi_value, void*, void*);
}
#define NAPI_AUTO_LENGTH SIZE_MAX

/// Node's data about a thread-safe function.
struct FakeFunction {
  napi_threadsafe_function_call_js call;
  napi_finalize finalize;
  void* finalize_data;
  void* context;
  int queued = 0;
  int references = 1;
  bool is_closed = false;
};
typedef FakeFunction* napi_threadsafe_function;

/// The one created last.
inline FakeFunction* last_function = nullptr;
/// The JavaScript function that it calls.
inline std::function<void()> on_wake_of_scenario;

inline napi_status napi_create_string_utf8(napi_env, const char*, size_t, napi_value* value) {
  *value = nullptr;
  return napi_ok;
}
inline napi_status napi_create_threadsafe_function(napi_env, napi_value, napi_value, napi_value, size_t, size_t,
                                                   void* finalize_data, napi_finalize finalize, void* context,
                                                   napi_threadsafe_function_call_js call,
                                                   napi_threadsafe_function* function) {
  *function = last_function = new FakeFunction{call, finalize, finalize_data, context};
  return napi_ok;
}
inline napi_status napi_call_threadsafe_function(napi_threadsafe_function function, void*,
                                                 napi_threadsafe_function_call_mode) {
  explorer::Step("queue", function);
  explorer::Drain();
  if (function->is_closed) return napi_closing;
  ++function->queued;
  explorer::WakeAll(function);
  return napi_ok;
}
inline napi_status napi_release_threadsafe_function(napi_threadsafe_function function,
                                                    napi_threadsafe_function_release_mode) {
  explorer::Step("release", function);
  explorer::Drain();
  function->is_closed = true;
  explorer::WakeAll(function);
  return napi_ok;
}
inline napi_status napi_ref_threadsafe_function(napi_env, napi_threadsafe_function function) {
  function->references = 1;
  return napi_ok;
}
inline napi_status napi_unref_threadsafe_function(napi_env, napi_threadsafe_function function) {
  function->references = 0;
  return napi_ok;
}
inline napi_status napi_get_undefined(napi_env, napi_value* value) {
  *value = nullptr;
  return napi_ok;
}
inline napi_status napi_call_function(napi_env, napi_value, napi_value, size_t, const napi_value*, napi_value*) {
  on_wake_of_scenario();
  return napi_ok;
}
