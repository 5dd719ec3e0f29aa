// Runs something long on Node's thread pool and settles a promise with what came of it.
//
// The work may end while its environment does: Node waits for it, and then completes it with an environment in which no
// JavaScript runs any more. Every call fails there and nobody waits for the promise, so failures are let go.
#pragma once

#include <napi.h>

#include <functional>
#include <utility>

namespace millrace {

class OffLoop final : public Napi::AsyncWorker {
 public:
  /// `work` runs on a pool thread; `settle` on the environment's thread, and returns the promise's value, or null with
  /// an exception pending to reject it.
  static napi_value Run(napi_env env, std::function<void()> work, std::function<napi_value(napi_env)> settle) {
    napi_deferred deferred = nullptr;
    napi_value promise = nullptr;
    if (napi_create_promise(env, &deferred, &promise) != napi_ok) return nullptr;
    auto* worker = new OffLoop(env, deferred, std::move(work), std::move(settle));
    worker->Queue();  // Deletes itself when it is done.
    return promise;
  }

 protected:
  void Execute() override { work_(); }
  void OnOK() override {
    const napi_env env = Env();
    const napi_value value = settle_(env);
    napi_value error = nullptr;
    if (value != nullptr) {
      napi_resolve_deferred(env, deferred_, value);
    } else if (napi_get_and_clear_last_exception(env, &error) == napi_ok) {
      napi_reject_deferred(env, deferred_, error);
    }
  }

 private:
  OffLoop(napi_env env, napi_deferred deferred, std::function<void()> work, std::function<napi_value(napi_env)> settle)
      : Napi::AsyncWorker(Napi::Env(env)), deferred_(deferred), work_(std::move(work)), settle_(std::move(settle)) {}

  const napi_deferred deferred_;
  std::function<void()> work_;
  std::function<napi_value(napi_env)> settle_;
};

}  // namespace millrace
