// Threads of a block that can wait: each one is a coroutine, and so is every device function that can wait.
//
// The builder changes the type of a kernel that waits to mr_task and of a device function that waits from T to
// mr_dco<T>, and inserts co_await before calls that can wait (src/toolchain/cuda-to-cpu/coroutines.ts). A thread knows
// its innermost coroutine, which is the one to resume (block_threads.h).
#pragma once

#include "coroutine_frames.h"
#include "coroutine_support.h"
#include "thread_index.h"

struct mr_request;
/// A condition that a thread waits for (condition_waits.h).
struct mr_gate {
  bool (*is_open)(const mr_gate*);
};
struct mr_block_barrier;

/// One thread of a block.
struct mr_thread {
  /// The frame to resume; null when the thread has returned.
  void* frame = nullptr;
  /// The warp operation that it waits for; null when it is at a block barrier, or runs.
  mr_request* request = nullptr;
  /// The gate that it waits at, if any.
  const mr_gate* gate = nullptr;
  mr_block_barrier* barrier = nullptr;
  mr_index3 index;
  /// Its lane in its warp.
  int lane = 0;
};

/// Awaits a value of any other type at once: the builder matches names, so it may await a function that does not wait.
template <class T>
struct mr_ready {
  T value;
  MR_INLINE bool await_ready() const noexcept { return true; }
  template <class Handle>
  MR_INLINE void await_suspend(Handle) const noexcept {}
  MR_INLINE T await_resume() { return static_cast<T&&>(value); }
};

template <class T>
struct mr_is_awaitable {
  template <class U>
  static constexpr bool test(decltype(&U::await_ready)) {
    return true;
  }
  template <class U>
  static constexpr bool test(...) {
    return false;
  }
  static constexpr bool value = test<T>(nullptr);
};
template <class T>
struct mr_without_reference {
  using type = T;
};
template <class T>
struct mr_without_reference<T&> {
  using type = T;
};

struct mr_promise {
  mr_thread* thread = nullptr;

  static void* operator new(size_t bytes) noexcept { return mr_current_frames->take(bytes); }
  static void operator delete(void* frame, size_t bytes) noexcept { mr_current_frames->give_back(frame, bytes); }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  void unhandled_exception() const noexcept {}

  template <class T>
  MR_INLINE auto await_transform(T&& value) {
    using Plain = typename mr_without_reference<T>::type;
    if constexpr (mr_is_awaitable<Plain>::value) {
      return static_cast<Plain&&>(value);
    } else {
      return mr_ready<T&&>{static_cast<T&&>(value)};
    }
  }
};

/// A kernel that waits. Its frame is freed when it returns.
struct mr_task {
  struct promise_type : mr_promise {
    mr_task get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    void return_void() noexcept { thread->frame = nullptr; }
    std::suspend_never final_suspend() const noexcept { return {}; }
  };
  std::coroutine_handle<promise_type> handle;
};

/// An array type that is aligned for every vector type: g++ ignores the alignment of variables in frames.
template <class T>
struct mr_aligned_array {
  typedef T type __attribute__((aligned(alignof(T) > 16 ? alignof(T) : 16)));
};
template <class T>
using mr_aligned = typename mr_aligned_array<T>::type;

/// Distinguishes the placement new below from any that the source declares.
struct mr_place {
  void* at;
};
MR_INLINE void* operator new(size_t, mr_place place) noexcept {
  return place.at;
}

template <class T>
struct mr_returned {
  alignas(T) char bytes[sizeof(T)];
  MR_INLINE void return_value(T value) { new (mr_place{bytes}) T(static_cast<T&&>(value)); }
  MR_INLINE T take() {
    struct Value {
      T* at;
      MR_INLINE ~Value() { at->~T(); }
    } value{reinterpret_cast<T*>(bytes)};
    return static_cast<T&&>(*value.at);
  }
};
template <class T>
struct mr_returned<T&> {
  T* address;
  MR_INLINE void return_value(T& value) { address = &value; }
  MR_INLINE T& take() { return *address; }
};
template <>
struct mr_returned<void> {
  MR_INLINE void return_void() {}
  MR_INLINE void take() {}
};

/// A device function that waits and returns a T. It starts when it is awaited, and its caller resumes when it returns.
template <class T>
struct [[nodiscard]] mr_dco {
  struct promise_type : mr_promise, mr_returned<T> {
    void* caller = nullptr;

    struct Return {
      MR_INLINE bool await_ready() const noexcept { return false; }
      MR_INLINE std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
        return std::coroutine_handle<>::from_address(self.promise().caller);
      }
      MR_INLINE void await_resume() const noexcept {}
    };
    mr_dco get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    Return final_suspend() const noexcept { return {}; }
  };

  std::coroutine_handle<promise_type> handle;

  MR_INLINE bool await_ready() const noexcept { return false; }
  template <class Promise>
  MR_INLINE std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) const noexcept {
    handle.promise().thread = caller.promise().thread;
    handle.promise().caller = caller.address();
    return handle;
  }
  MR_INLINE T await_resume() {
    struct Frame {
      std::coroutine_handle<promise_type> handle;
      ~Frame() { handle.destroy(); }
    } frame{handle};
    return handle.promise().take();
  }
};

/// Calls a coroutine lambda where it is defined, and keeps it alive: of two temporaries in one expression with
/// co_await, g++ 12 destroys one too early.
template <class Body, class... Args>
auto mr_run(Body body, Args... args) -> decltype(body(args...)) {
  co_return co_await body(static_cast<Args&&>(args)...);
}

/// The result type of an awaited call, for decltype.
template <class T>
auto mr_awaited(T&& value) -> decltype(mr_promise{}.await_transform(static_cast<T&&>(value)).await_resume());

/// The return type for an expression of type decltype((expression)): a reference for an lvalue, else an object.
template <class T>
struct mr_result_of {
  using type = T;
};
template <class T>
struct mr_result_of<T&&> {
  using type = T;
};
template <class T>
using mr_result = typename mr_result_of<T>::type;

/// The type that a function whose type is deduced returns for an expression of type T.
template <class T>
struct mr_without_const {
  using type = T;
};
template <class T>
struct mr_without_const<const T> {
  using type = T;
};
template <class T>
struct mr_plain_of : mr_without_const<T> {};
template <class T>
struct mr_plain_of<T&> : mr_without_const<T> {};
template <class T>
struct mr_plain_of<T&&> : mr_without_const<T> {};
template <>
struct mr_plain_of<mr_index> {
  using type = unsigned;
};
template <class T>
using mr_plain = typename mr_plain_of<T>::type;

/// A variable of type T, for decltype.
template <class T>
T& mr_value_of();
