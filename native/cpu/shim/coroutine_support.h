// Declares the names of <coroutine> that compilers require for co_await, without the headers that it includes.
#pragma once

#include "types.h"

namespace std {

template <class Result, class... Params>
struct coroutine_traits {
  using promise_type = typename Result::promise_type;
};

template <class Promise = void>
struct coroutine_handle;

template <>
struct coroutine_handle<void> {
  void* mr_frame = nullptr;

  static constexpr coroutine_handle from_address(void* address) noexcept {
    coroutine_handle handle;
    handle.mr_frame = address;
    return handle;
  }
  constexpr void* address() const noexcept { return mr_frame; }
  void resume() const { __builtin_coro_resume(mr_frame); }
  void destroy() const { __builtin_coro_destroy(mr_frame); }
  bool done() const noexcept { return __builtin_coro_done(mr_frame); }
};

template <class Promise>
struct coroutine_handle : coroutine_handle<> {
  static coroutine_handle from_promise(Promise& promise) noexcept {
    coroutine_handle handle;
    handle.mr_frame = __builtin_coro_promise(reinterpret_cast<char*>(&promise), __alignof__(Promise), true);
    return handle;
  }
  static constexpr coroutine_handle from_address(void* address) noexcept {
    coroutine_handle handle;
    handle.mr_frame = address;
    return handle;
  }
  Promise& promise() const {
    return *static_cast<Promise*>(__builtin_coro_promise(mr_frame, __alignof__(Promise), false));
  }
};

struct suspend_always {
  constexpr bool await_ready() const noexcept { return false; }
  constexpr void await_suspend(coroutine_handle<>) const noexcept {}
  constexpr void await_resume() const noexcept {}
};

struct suspend_never {
  constexpr bool await_ready() const noexcept { return true; }
  constexpr void await_suspend(coroutine_handle<>) const noexcept {}
  constexpr void await_resume() const noexcept {}
};

}  // namespace std
