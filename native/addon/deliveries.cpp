#include "addon/deliveries.h"

#include <pthread.h>

#include <utility>

namespace millrace {
namespace {

/// Compilers recurse deeply. Threads of Node's own pool have the same stack size.
constexpr size_t kStackBytes = size_t{8} << 20;

struct Task {
  std::function<void()> run;
};

void* RunTask(void* data) {
  pthread_setname_np(pthread_self(), "mr-work");
  const std::unique_ptr<Task> task(static_cast<Task*>(data));
  task->run();
  return nullptr;
}

/// Unlike std::thread, reports when the system refuses a thread. Returns 0 or an errno.
int StartDetached(std::function<void()> run) {
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  auto task = std::make_unique<Task>(Task{std::move(run)});
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  error = pthread_create(&thread, &attributes, RunTask, task.get());
  if (error == 0) task.release();
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

std::shared_ptr<Deliveries> Deliveries::Open(napi_env env) {
  auto opened = std::make_shared<Deliveries>();
  napi_value name = nullptr;
  if (napi_create_string_utf8(env, "millrace deliveries", NAPI_AUTO_LENGTH, &name) != napi_ok) return nullptr;
  // The function keeps this object alive until Node finalises it, after which no call is in progress.
  auto* held = new std::shared_ptr<Deliveries>(opened);
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<std::shared_ptr<Deliveries>*>(data); };
  if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, held, finalize, opened.get(), CallJs,
                                      &opened->function_) != napi_ok) {
    delete held;
    return nullptr;
  }
  napi_unref_threadsafe_function(env, opened->function_);
  return opened;
}

napi_value Deliveries::PromiseOff(napi_env env, std::function<void()> work, std::function<void()> failed,
                                  std::function<napi_value(napi_env)> make) {
  const auto start = [this, work = std::move(work), failed = std::move(failed)](std::function<void()> settle) {
    {
      std::lock_guard lock(mutex_);
      ++threads_;
    }
    const auto run = [self = shared_from_this(), work, settle] {
      work();
      settle();
      std::lock_guard lock(self->mutex_);
      if (--self->threads_ == 0) self->idle_.notify_all();
    };
    if (StartDetached(run) == 0) return;
    failed();
    settle();
    std::lock_guard lock(mutex_);
    --threads_;
  };
  return Promise(env, start, std::move(make));
}

void Deliveries::Post(Function function) {
  std::lock_guard lock(mutex_);
  if (function_ == nullptr) return;
  posted_.push_back(std::move(function));
  if (posted_.size() == 1) napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking);
}

void Deliveries::CallJs(napi_env env, napi_value, void* context, void*) {
  auto& self = *static_cast<Deliveries*>(context);
  std::vector<Function> posted;
  {
    std::lock_guard lock(self.mutex_);
    posted.swap(self.posted_);
  }
  if (env == nullptr) return;
  for (const Function& function : posted) function(env);
}

void Deliveries::Hold(napi_env env) {
  if (++expected_ != 1) return;
  std::lock_guard lock(mutex_);
  if (function_ != nullptr) napi_ref_threadsafe_function(env, function_);
}

void Deliveries::Settle(napi_env env, napi_deferred deferred, const std::function<napi_value(napi_env)>& make) {
  if (--expected_ == 0) {
    std::lock_guard lock(mutex_);
    if (function_ != nullptr) napi_unref_threadsafe_function(env, function_);
  }
  const napi_value value = make(env);
  napi_value error = nullptr;
  if (value != nullptr) {
    napi_resolve_deferred(env, deferred, value);
  } else if (napi_get_and_clear_last_exception(env, &error) == napi_ok) {
    napi_reject_deferred(env, deferred, error);
  }
}

void Deliveries::Close(std::chrono::milliseconds deadline) {
  napi_threadsafe_function function = nullptr;
  std::vector<Function> dropped;  // Destroyed after the lock is released.
  {
    std::unique_lock lock(mutex_);
    function = std::exchange(function_, nullptr);
    dropped.swap(posted_);
  }
  if (function != nullptr) napi_release_threadsafe_function(function, napi_tsfn_abort);
  std::unique_lock lock(mutex_);
  idle_.wait_for(lock, deadline, [&] { return threads_ == 0; });
}

}  // namespace millrace
