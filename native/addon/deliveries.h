// Functions that the addon's own threads post to an environment: they run on its thread, in order. Asynchronous calls
// of the addon settle their promises this way.
//
// Node's thread pool is not used: it has four threads for the whole process, including file system calls, and an
// environment cannot end until its work there is done. A driver or compiler may take long, a kernel forever.
#pragma once

#include <node_api.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "hal/status.h"

namespace millrace {

/// Why a promise cannot be made, and why its work did not begin.
inline constexpr Status kNoFunction{StatusCode::kInternal, "creating a thread-safe function"};
inline constexpr Status kNoThread{StatusCode::kOutOfMemory, "starting a thread"};

class Deliveries : public std::enable_shared_from_this<Deliveries> {
 public:
  using Function = std::function<void(napi_env)>;

  /// Thread: the environment's. Null when Node refuses, as while the environment ends.
  static std::shared_ptr<Deliveries> Open(napi_env env);

  /// A promise that keeps the event loop alive. `start(settle)` begins an operation that calls `settle` once, from any
  /// thread, or never if the environment ends first. On the environment's thread, `make` returns the promise's value,
  /// or null with a pending exception to reject it. A failed `start` rejects. Thread: the environment's.
  template <typename Start>
  napi_value Promise(napi_env env, Start start, std::function<napi_value(napi_env)> make) {
    napi_deferred deferred = nullptr;
    napi_value promise = nullptr;
    if (napi_create_promise(env, &deferred, &promise) != napi_ok) return nullptr;
    Hold(env);
    start([self = shared_from_this(), deferred, make = std::move(make)] {
      self->Post([self, deferred, make](napi_env env) { self->Settle(env, deferred, make); });
    });
    return promise;
  }
  /// Like Promise, for `work` on a thread of its own. Calls `failed` instead if the system refuses a thread.
  napi_value PromiseOff(napi_env env, std::function<void()> work, std::function<void()> failed,
                        std::function<napi_value(napi_env)> make);

  /// Runs `function` on the environment's thread, unless that ends first. Thread: any.
  void Post(Function function);
  /// Runs no further functions, and waits until the deadline for the threads of PromiseOff. Thread: the environment's.
  void Close(std::chrono::milliseconds deadline);

 private:
  static void CallJs(napi_env env, napi_value, void* context, void*);
  void Hold(napi_env env);
  void Settle(napi_env env, napi_deferred deferred, const std::function<napi_value(napi_env)>& make);

  uint32_t expected_ = 0;  // Unsettled promises. Thread: the environment's.

  std::mutex mutex_;
  std::condition_variable idle_;
  // Guarded by mutex_.
  napi_threadsafe_function function_ = nullptr;  // Null once closed.
  std::vector<Function> posted_;
  uint32_t threads_ = 0;
};

}  // namespace millrace
