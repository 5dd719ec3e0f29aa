// Notifies an owner of progress: one thread-safe function per environment, called at most once until JavaScript has
// run.
//
// Rules, each of which prevents a crash that occurred:
//  1. The thread-safe function is called under a mutex with an alive flag, because native threads outlive environments.
//  2. The environment's clean-up hook releases it, never a destructor.
//  3. It is unreferenced at once; only an owner with pending waits keeps the process alive.
#pragma once

#include <node_api.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/stream_state.h"

namespace millrace {

class Port final : public WakeTarget {
 public:
  /// Thread: the environment's. Null when Node refuses.
  static std::shared_ptr<Port> Open(napi_env env, napi_value on_wake);

  /// Calls `on_wake` on the environment's thread, once for any number of rings. Thread: any.
  void Ring() noexcept override;
  /// Keeps the environment's event loop alive, or stops doing so. Thread: the environment's.
  void Ref(napi_env env, bool on);
  /// Afterwards no ring reaches JavaScript. Thread: the environment's.
  void Close();

 private:
  static void CallJs(napi_env env, napi_value on_wake, void* context, void* data);

  std::atomic<bool> is_rung_{false};
  std::mutex mutex_;
  napi_threadsafe_function function_ = nullptr;  // Guarded by mutex_; null once closed.
};

}  // namespace millrace
