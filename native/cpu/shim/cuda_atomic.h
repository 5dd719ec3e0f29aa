// Atomic objects of CUDA's C++ library: cuda::atomic and cuda::atomic_ref. Every scope is that of the host's threads.
#pragma once

#include "cuda_functional.h"

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

enum memory_order {
  memory_order_relaxed = __ATOMIC_RELAXED,
  memory_order_consume = __ATOMIC_CONSUME,
  memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE,
  memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST
};

MR_INLINE void atomic_thread_fence(memory_order, thread_scope = thread_scope_system) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/// The operations of both classes on the value at an address. A weaker order than the strongest would be no faster,
/// except for stores.
template <class T>
class mr_atomic_operations {
 public:
  using value_type = T;

  static MR_INLINE T load_from(const T* at) {
    T value;
    __atomic_load(at, &value, __ATOMIC_SEQ_CST);
    return value;
  }
  static MR_INLINE void store_to(T* at, T value, memory_order order) {
    if (order == memory_order_seq_cst) {
      __atomic_store(at, &value, __ATOMIC_SEQ_CST);
    } else {
      __atomic_store(at, &value, __ATOMIC_RELEASE);
    }
  }
  static MR_INLINE T exchange_at(T* at, T value) {
    T before;
    __atomic_exchange(at, &value, &before, __ATOMIC_SEQ_CST);
    return before;
  }
  static MR_INLINE bool compare_at(T* at, T& expected, T desired) {
    return __atomic_compare_exchange(at, &expected, &desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  template <class Change>
  static MR_INLINE T change(T* at, Change change) {
    T before = load_from(at);
    while (!compare_at(at, before, static_cast<T>(change(before)))) {
    }
    return before;
  }
};

template <class T, class Own>
class mr_atomic_members : mr_atomic_operations<T> {
  using Do = mr_atomic_operations<T>;
  MR_INLINE T* at() const { return static_cast<const Own*>(this)->address(); }

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = sizeof(T) <= 8;
  MR_INLINE bool is_lock_free() const { return is_always_lock_free; }

  MR_INLINE T load(memory_order = memory_order_seq_cst) const { return Do::load_from(at()); }
  MR_INLINE operator T() const { return load(); }
  MR_INLINE void store(T value, memory_order order = memory_order_seq_cst) const { Do::store_to(at(), value, order); }
  MR_INLINE T exchange(T value, memory_order = memory_order_seq_cst) const { return Do::exchange_at(at(), value); }
  template <class... Orders>
  MR_INLINE bool compare_exchange_strong(T& expected, T desired, Orders...) const {
    return Do::compare_at(at(), expected, desired);
  }
  template <class... Orders>
  MR_INLINE bool compare_exchange_weak(T& expected, T desired, Orders...) const {
    return Do::compare_at(at(), expected, desired);
  }
  MR_INLINE T fetch_add(T by, memory_order = memory_order_seq_cst) const {
    return Do::change(at(), [by](T now) { return now + by; });
  }
  MR_INLINE T fetch_sub(T by, memory_order = memory_order_seq_cst) const {
    return Do::change(at(), [by](T now) { return now - by; });
  }
  MR_INLINE T fetch_and(T by, memory_order = memory_order_seq_cst) const {
    return Do::change(at(), [by](T now) { return now & by; });
  }
  MR_INLINE T fetch_or(T by, memory_order = memory_order_seq_cst) const {
    return Do::change(at(), [by](T now) { return now | by; });
  }
  MR_INLINE T fetch_xor(T by, memory_order = memory_order_seq_cst) const {
    return Do::change(at(), [by](T now) { return now ^ by; });
  }
  MR_INLINE T fetch_max(T by, memory_order = memory_order_seq_cst) const {
    return Do::change(at(), [by](T now) { return now < by ? by : now; });
  }
  MR_INLINE T fetch_min(T by, memory_order = memory_order_seq_cst) const {
    return Do::change(at(), [by](T now) { return by < now ? by : now; });
  }
  MR_INLINE T operator++() const { return fetch_add(1) + 1; }
  MR_INLINE T operator--() const { return fetch_sub(1) - 1; }
  MR_INLINE T operator++(int) const { return fetch_add(1); }
  MR_INLINE T operator--(int) const { return fetch_sub(1); }
  MR_INLINE T operator+=(T by) const { return fetch_add(by) + by; }
  MR_INLINE T operator-=(T by) const { return fetch_sub(by) - by; }
  MR_INLINE T operator&=(T by) const { return fetch_and(by) & by; }
  MR_INLINE T operator|=(T by) const { return fetch_or(by) | by; }
  MR_INLINE T operator^=(T by) const { return fetch_xor(by) ^ by; }
};

template <class T, thread_scope Scope = thread_scope_system>
class atomic : public mr_atomic_members<T, atomic<T, Scope>> {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  MR_INLINE T operator=(T value) {
    this->store(value);
    return value;
  }
  MR_INLINE T* address() const { return const_cast<T*>(&value_); }

 private:
  alignas(sizeof(T)) T value_;
};

/// Atomic operations on a value that is declared without them.
template <class T, thread_scope Scope = thread_scope_system>
class atomic_ref : public mr_atomic_members<T, atomic_ref<T, Scope>> {
 public:
  MR_INLINE explicit atomic_ref(T& value) : at_(&value) {}
  MR_INLINE T operator=(T value) const {
    this->store(value);
    return value;
  }
  MR_INLINE T* address() const { return at_; }

 private:
  T* at_;
};

namespace std {
using ::cuda::atomic_thread_fence;
using ::cuda::memory_order;
using ::cuda::memory_order_acq_rel;
using ::cuda::memory_order_acquire;
using ::cuda::memory_order_consume;
using ::cuda::memory_order_relaxed;
using ::cuda::memory_order_release;
using ::cuda::memory_order_seq_cst;
template <class T>
using atomic = ::cuda::atomic<T, thread_scope_system>;
template <class T>
using atomic_ref = ::cuda::atomic_ref<T, thread_scope_system>;
}  // namespace std

}  // namespace cuda
