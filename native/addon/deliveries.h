// What threads of the addon's own hand over to an environment: functions that run on its thread, in the order in which
// they came. The way an asynchronous call of the addon settles its promise.
//
// Node's thread pool is not used: it has four threads for the whole process, file system included, and Node waits for
// what runs there before an environment may end. A driver or a compiler may take long, and a kernel may run for ever.
#pragma once

#include <node_api.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace {

class Deliveries : public std::enable_shared_from_this<Deliveries> {
 public:
  using Function = std::function<void(napi_env)>;

  /// Thread: the environment's. Null when Node refuses, as it does while the environment ends.
  static std::shared_ptr<Deliveries> Open(napi_env env);

  /// A promise, and the loop held open for it. `start(settle)` begins something that calls `settle` once, from any
  /// thread, or never if the environment ends first. `make` gives the promise's value on the environment's thread, or
  /// null with an exception pending to reject it. A failed `start` rejects. Thread: the environment's.
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
  /// As Promise, of `work` on a thread of its own. `failed` is called instead when the system gives no thread.
  napi_value PromiseOff(napi_env env, std::function<void()> work, std::function<void()> failed,
                        std::function<napi_value(napi_env)> make);

  /// Runs `function` on the environment's thread, unless it ends first. Thread: any.
  void Post(Function function);
  /// Nothing runs any more, and what threads of PromiseOff are at is waited for until then. Thread: the environment's.
  void Close(std::chrono::milliseconds deadline);

 private:
  static void CallJs(napi_env env, napi_value, void* context, void*);
  void Hold(napi_env env);
  void Settle(napi_env env, napi_deferred deferred, const std::function<napi_value(napi_env)>& make);

  uint32_t expected_ = 0;  // Promises that are not settled. Thread: the environment's.

  std::mutex mutex_;
  std::condition_variable idle_;
  // Guarded by mutex_.
  napi_threadsafe_function function_ = nullptr;  // Null once closed.
  std::vector<Function> posted_;
  uint32_t threads_ = 0;
};

}  // namespace millrace
