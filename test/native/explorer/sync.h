// Included first (-include) in files that run under the explorer: the standard library's atomics, locks, clocks and
// threads, and the system's futex, then name the explorer's. The files stay unchanged.
#pragma once

// Included first, so that the names below do not affect the standard library.
#include <bits/stdc++.h>  // NOLINT: all of it
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "explorer/scheduler.h"

namespace explorer {

template <typename T>
uint64_t BitsOf(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T FromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// The operations of std::atomic and std::atomic_ref on the object at `At()`.
template <typename T, typename Derived>
class AtomicOperations {
 public:
  T load(std::memory_order = std::memory_order_seq_cst) const {
    Step("load", At());
    return FromBits<T>(Load(At(), sizeof(T)));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) const {
    if (order == std::memory_order_seq_cst) {
      exchange(value);
    } else {
      Step("store", At());
      Store(At(), BitsOf(value), sizeof(T));
    }
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) const {
    return Change("exchange", [&](T) { return value; });
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) const {
    const T wanted = expected;
    expected = Change("compare", [&](T seen) { return BitsOf(seen) == BitsOf(wanted) ? desired : seen; });
    return BitsOf(expected) == BitsOf(wanted);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order = std::memory_order_seq_cst,
                             std::memory_order = std::memory_order_seq_cst) const {
    return compare_exchange_strong(expected, desired);
  }
  template <typename D>
  T fetch_add(D by, std::memory_order = std::memory_order_seq_cst) const {
    return Change("add", [&](T seen) { return static_cast<T>(seen + by); });
  }
  template <typename D>
  T fetch_sub(D by, std::memory_order = std::memory_order_seq_cst) const {
    return Change("subtract", [&](T seen) { return static_cast<T>(seen - by); });
  }
  template <typename D>
  T fetch_or(D bits, std::memory_order = std::memory_order_seq_cst) const {
    return Change("or", [&](T seen) { return static_cast<T>(seen | bits); });
  }
  operator T() const { return load(); }  // NOLINT: as std::atomic

 private:
  [[nodiscard]] void* At() const { return static_cast<const Derived*>(this)->address(); }
  T Change(const char* what, auto change) const {
    Step(what, At());
    Drain();
    T seen;
    std::memcpy(&seen, At(), sizeof(T));
    const T changed = change(seen);
    std::memcpy(At(), &changed, sizeof(T));
    return seen;
  }
};

template <typename T>
class explored_atomic : public AtomicOperations<T, explored_atomic<T>> {
 public:
  constexpr explored_atomic() noexcept : value_() {}
  constexpr explored_atomic(T value) noexcept : value_(value) {}  // NOLINT: as std::atomic
  explored_atomic(const explored_atomic&) = delete;
  explored_atomic& operator=(const explored_atomic&) = delete;
  T operator=(T value) {  // NOLINT: as std::atomic
    this->store(value);
    return value;
  }
  [[nodiscard]] void* address() const { return const_cast<T*>(&value_); }

 private:
  T value_;
};

template <typename T>
class explored_atomic_ref : public AtomicOperations<T, explored_atomic_ref<T>> {
 public:
  explicit explored_atomic_ref(T& object) : object_(&object) {}
  [[nodiscard]] void* address() const { return object_; }

 private:
  T* object_;
};

inline void explored_atomic_thread_fence(std::memory_order order) {
  if (order == std::memory_order_seq_cst) Drain();
}

class explored_shared_mutex {
 public:
  void lock() {
    Step("lock", this);
    Drain();
    while (is_locked_ || readers_ > 0) Wait(this);
    is_locked_ = true;
  }
  bool try_lock() {
    Step("try", this);
    Drain();
    if (is_locked_ || readers_ > 0) return false;
    return is_locked_ = true;
  }
  void unlock() {
    Drain();
    is_locked_ = false;
    WakeAll(this);
  }
  void lock_shared() {
    Step("share", this);
    Drain();
    while (is_locked_) Wait(this);
    ++readers_;
  }
  void unlock_shared() {
    Drain();
    if (--readers_ == 0) WakeAll(this);
  }

 private:
  bool is_locked_ = false;
  int readers_ = 0;
};

class explored_mutex : public explored_shared_mutex {};

class explored_condition_variable {
 public:
  void wait(std::unique_lock<explored_mutex>& lock) {
    lock.unlock();
    Wait(this);
    lock.lock();
  }
  template <typename IsReady>
  void wait(std::unique_lock<explored_mutex>& lock, IsReady is_ready) {
    while (!is_ready()) wait(lock);
  }
  template <typename Limit>
  std::cv_status wait_for(std::unique_lock<explored_mutex>& lock, Limit limit) {
    lock.unlock();
    const bool is_woken = Wait(this, std::chrono::nanoseconds(limit).count());
    lock.lock();
    return is_woken ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  template <typename Limit, typename IsReady>
  bool wait_for(std::unique_lock<explored_mutex>& lock, Limit limit, IsReady is_ready) {
    while (!is_ready()) {
      if (wait_for(lock, limit) == std::cv_status::timeout) return is_ready();
    }
    return true;
  }
  void notify_one() {
    Step("notify", this);
    WakeOne(this);
  }
  void notify_all() {
    Step("notify", this);
    WakeAll(this);
  }
};

struct explored_steady_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<explored_steady_clock>;
  static constexpr bool is_steady = true;
  static time_point now() { return time_point(duration(NowNs())); }
};

struct explored_thread {
  /// A single core, so that the code under test sleeps instead of spinning.
  static unsigned hardware_concurrency() { return 1; }
};

template <typename Word>
long explored_syscall(long, Word* word, int operation, uint32_t value, const timespec* limit, void*, int) {
  Step("futex", word);
  Drain();
  if (operation == FUTEX_WAKE_PRIVATE || operation == FUTEX_WAKE) {
    WakeOne(word);
    return 0;
  }
  if (Load(word->address(), sizeof(value)) != value) return -1;
  return Wait(word, limit == nullptr ? -1 : limit->tv_sec * 1'000'000'000 + limit->tv_nsec) ? 0 : -1;
}

inline int explored_pthread_create(pthread_t* thread, const pthread_attr_t*, void* (*entry)(void*), void* argument) {
  Step("create", nullptr);
  *thread = Spawn("thread", [entry, argument] { entry(argument); });
  return 0;
}
inline int explored_pthread_join(pthread_t thread, void**) {
  Join(static_cast<uint32_t>(thread));
  return 0;
}
inline int explored_pthread_detach(pthread_t) {
  return 0;
}
inline int explored_pthread_setname_np(pthread_t, const char* name) {
  NameThread(name);
  return 0;
}

namespace explored_this_thread {
inline void sleep_for(std::chrono::nanoseconds limit) {
  static const char nothing = 0;
  Drain();
  Wait(&nothing, limit.count());
}
inline void yield() {
  sleep_for(std::chrono::nanoseconds(1));
}
}  // namespace explored_this_thread

}  // namespace explorer

namespace std {  // NOLINT: only where the explorer runs
using explorer::explored_atomic;
using explorer::explored_atomic_ref;
using explorer::explored_atomic_thread_fence;
using explorer::explored_condition_variable;
using explorer::explored_mutex;
using explorer::explored_shared_mutex;
using explorer::explored_thread;
namespace explored_this_thread = explorer::explored_this_thread;
namespace chrono {
using explorer::explored_steady_clock;
}  // namespace chrono
}  // namespace std
using explorer::explored_pthread_create;
using explorer::explored_pthread_detach;
using explorer::explored_pthread_join;
using explorer::explored_pthread_setname_np;
using explorer::explored_syscall;

#define atomic explored_atomic
#define atomic_ref explored_atomic_ref
#define atomic_thread_fence explored_atomic_thread_fence
#define condition_variable explored_condition_variable
#define mutex explored_mutex
#define pthread_create explored_pthread_create
#define pthread_detach explored_pthread_detach
#define pthread_join explored_pthread_join
#define pthread_setname_np explored_pthread_setname_np
#define shared_mutex explored_shared_mutex
#define steady_clock explored_steady_clock
#define syscall explored_syscall
#define this_thread explored_this_thread
#define thread explored_thread
