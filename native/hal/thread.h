// Threads whose creation may fail. std::thread throws when the system refuses a thread (EAGAIN: a limit of the user,
// the container or the memory), which ends a process compiled without exceptions; these return a Status.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "hal/status.h"

namespace millrace {

/// Tests set this to make the system refuse threads: called before each creation with the thread's name. A nonzero
/// result is the error number with which the creation then fails. Thread: any.
inline std::atomic<int (*)(const char* name)> refuse_thread_for_test{nullptr};

/// Like pthread_create, for a thread named `name`: returns 0 or an error number. Thread: any.
[[nodiscard]] inline int CreateThread(const char* name, pthread_t* thread, const pthread_attr_t* attributes,
                                      void* (*entry)(void*), void* argument) {
  if (const auto refuse = refuse_thread_for_test.load(std::memory_order_relaxed)) {
    if (const int error = refuse(name); error != 0) return error;
  }
  return pthread_create(thread, attributes, entry, argument);
}

/// One thread. It must be joined or detached before this object is destroyed. Thread: the owner's.
class Thread {
 public:
  Thread() = default;
  Thread(Thread&& other) noexcept : handle_(other.handle_), is_joinable_(std::exchange(other.is_joinable_, false)) {}
  Thread& operator=(Thread&&) = delete;
  ~Thread() { MR_CHECK(!is_joinable_); }

  /// Runs `body` on a thread named `name` (at most 15 characters). kUnavailable, with the system's error number, if the
  /// thread cannot be created; `body` is then dropped.
  Status Start(const char* name, std::function<void()> body) {
    MR_CHECK(!is_joinable_);
    auto start = std::make_unique<Body>(name, std::move(body));
    const int error = CreateThread(name, &handle_, nullptr, &Entry, start.get());
    if (error != 0) return {StatusCode::kUnavailable, "starting a thread", error};
    start.release();  // The thread owns it now.
    is_joinable_ = true;
    return {};
  }

  [[nodiscard]] bool joinable() const { return is_joinable_; }
  /// Waits until the thread ends.
  void Join() {
    MR_CHECK(std::exchange(is_joinable_, false));
    pthread_join(handle_, nullptr);
  }
  /// Lets the thread run on its own.
  void Detach() {
    MR_CHECK(std::exchange(is_joinable_, false));
    pthread_detach(handle_);
  }

 private:
  using Body = std::pair<std::string, std::function<void()>>;

  static void* Entry(void* argument) {
    const std::unique_ptr<Body> start(static_cast<Body*>(argument));
    pthread_setname_np(pthread_self(), start->first.c_str());
    start->second();
    return nullptr;
  }

  pthread_t handle_{};
  bool is_joinable_ = false;
};

}  // namespace millrace
