// Runs something long on Node's thread pool and settles a promise with what came of it.
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
    auto* worker = new OffLoop(env, std::move(work), std::move(settle));
    const napi_value promise = worker->deferred_.Promise();
    worker->Queue();  // Deletes itself when it is done.
    return promise;
  }

 protected:
  void Execute() override { work_(); }
  void OnOK() override {
    const napi_value value = settle_(Env());
    if (value != nullptr) {
      deferred_.Resolve(value);
    } else {
      deferred_.Reject(Env().GetAndClearPendingException().Value());
    }
  }

 private:
  OffLoop(napi_env env, std::function<void()> work, std::function<napi_value(napi_env)> settle)
      : Napi::AsyncWorker(Napi::Env(env)), deferred_(env), work_(std::move(work)), settle_(std::move(settle)) {}

  Napi::Promise::Deferred deferred_;
  std::function<void()> work_;
  std::function<napi_value(napi_env)> settle_;
};

}  // namespace millrace
