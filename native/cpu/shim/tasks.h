// Threads of a block that can wait: each is a coroutine, and so is every device function in which one can wait.
//
// The builder gives a kernel that waits the type mr_task, a device function that waits mr_dco<T> instead of T, and puts
// co_await before what can wait (src/toolchain/cuda-to-cpu/coroutines.ts). A thread knows the innermost of its
// coroutines, which is the one to go on with (block_threads.h).
#pragma once

#include "coroutine_support.h"
#include "frames.h"
#include "index.h"

struct mr_request;
struct mr_block_barrier;

/// One thread of a block.
struct mr_thread {
  /// The frame to go on with; null when the thread has returned.
  void* frame = nullptr;
  /// What it waits for in its warp; null when it is at a barrier of the block, or runs.
  mr_request* request = nullptr;
  mr_block_barrier* barrier = nullptr;
  mr_index3 index;
  /// Its place in its warp.
  int lane = 0;
};

/// Passes through what a function gives that turns out not to wait: the builder goes by names, and names are shared.
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

/// A kernel that waits. Its frame goes when it returns.
struct mr_task {
  struct promise_type : mr_promise {
    mr_task get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    void return_void() noexcept { thread->frame = nullptr; }
    std::suspend_never final_suspend() const noexcept { return {}; }
  };
  std::coroutine_handle<promise_type> handle;
};

/// Tells the construction in place below from anything that a text may declare.
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
  MR_INLINE T take() { return static_cast<T&&>(*reinterpret_cast<T*>(bytes)); }
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

/// A device function that waits and gives a T. It starts when it is awaited, and its caller goes on when it returns.
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

/// Calls a coroutine that is written where it is called, and keeps it meanwhile: of two temporary objects in one
/// expression with co_await, g++ 12 loses one.
template <class Body, class... Args>
auto mr_run(Body body, Args... args) -> decltype(body(args...)) {
  co_return co_await body(static_cast<Args&&>(args)...);
}

/// The type of what an awaited call gives, for decltype.
template <class T>
auto mr_awaited(T&& value) -> decltype(mr_promise{}.await_transform(static_cast<T&&>(value)).await_resume());

/// What a function that returns an expression of type decltype((expression)) returns: an object, unless it has a name.
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
