// Makes the system refuse threads, as when a user or container has too many.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstring>

#include "hal/thread.h"

namespace millrace::testing {

/// During this object's lifetime, threads of that name cannot be created, except the first `spared`. One at a time.
class RefusedThreads {
 public:
  explicit RefusedThreads(const char* name, int spared = 0) {
    name_ = name;
    spared_ = spared;
    refused_ = 0;
    refuse_thread_for_test = [](const char* name) {
      if (std::strcmp(name, name_) != 0 || spared_.fetch_sub(1) > 0) return 0;
      refused_.fetch_add(1);
      return EAGAIN;
    };
  }
  ~RefusedThreads() { refuse_thread_for_test = nullptr; }
  RefusedThreads(const RefusedThreads&) = delete;
  RefusedThreads& operator=(const RefusedThreads&) = delete;

  /// How many were refused.
  [[nodiscard]] int count() const { return refused_.load(); }

 private:
  static inline const char* name_ = nullptr;
  static inline std::atomic<int> spared_{0};
  static inline std::atomic<int> refused_{0};
};

}  // namespace millrace::testing
