// The atomic functions that CUDA's compilers have built in, with an order and a scope: __nv_atomic_load_n and others.
// Each is sequentially consistent for all threads, which every order and scope allows.
#pragma once

#include "types.h"

#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_SYSTEM 0
#define __NV_THREAD_SCOPE_DEVICE 1
#define __NV_THREAD_SCOPE_BLOCK 2
#define __NV_THREAD_SCOPE_THREAD 3
#define __NV_THREAD_SCOPE_CLUSTER 4

/// The type of a value beside the pointer to it: the pointer alone decides.
template <class T>
struct mr_same_type {
  using type = T;
};
template <class T>
struct mr_same_type<const T> : mr_same_type<T> {};
template <class T>
struct mr_same_type<volatile T> : mr_same_type<T> {};
template <class T>
struct mr_same_type<const volatile T> : mr_same_type<T> {};
template <class T>
using mr_value_at = typename mr_same_type<T>::type;

template <class T>
MR_INLINE mr_value_at<T> __nv_atomic_load_n(T* from, int, int = 0) {
  mr_value_at<T> value;
  __atomic_load(from, &value, __ATOMIC_SEQ_CST);
  return value;
}
template <class T>
MR_INLINE void __nv_atomic_load(T* from, mr_value_at<T>* to, int order, int = 0) {
  *to = __nv_atomic_load_n(from, order);
}
template <class T>
MR_INLINE void __nv_atomic_store_n(T* to, mr_value_at<T> value, int, int = 0) {
  __atomic_store(to, &value, __ATOMIC_SEQ_CST);
}
template <class T>
MR_INLINE void __nv_atomic_store(T* to, const mr_value_at<T>* value, int order, int = 0) {
  __nv_atomic_store_n(to, *value, order);
}
template <class T>
MR_INLINE mr_value_at<T> __nv_atomic_exchange_n(T* at, mr_value_at<T> value, int, int = 0) {
  mr_value_at<T> before;
  __atomic_exchange(at, &value, &before, __ATOMIC_SEQ_CST);
  return before;
}
template <class T>
MR_INLINE bool __nv_atomic_compare_exchange_n(T* at, mr_value_at<T>* expected, mr_value_at<T> desired, bool, int, int,
                                              int = 0) {
  return __atomic_compare_exchange(at, expected, &desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
MR_INLINE void __nv_atomic_thread_fence(int, int = 0) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define MR_NV_ATOMIC(name, expression)                                                              \
  template <class T>                                                                                \
  MR_INLINE mr_value_at<T> __nv_atomic_fetch_##name(T* at, mr_value_at<T> by, int order, int = 0) { \
    mr_value_at<T> old = __nv_atomic_load_n(at, order);                                             \
    for (;;) {                                                                                      \
      mr_value_at<T> changed = (expression);                                                        \
      if (__nv_atomic_compare_exchange_n(at, &old, changed, false, order, order)) return old;       \
    }                                                                                               \
  }                                                                                                 \
  template <class T>                                                                                \
  MR_INLINE void __nv_atomic_##name(T* at, mr_value_at<T> by, int order, int = 0) {                 \
    __nv_atomic_fetch_##name(at, by, order);                                                        \
  }
MR_NV_ATOMIC(add, old + by)
MR_NV_ATOMIC(sub, old - by)
MR_NV_ATOMIC(and, old& by)
MR_NV_ATOMIC(or, old | by)
MR_NV_ATOMIC(xor, old ^ by)
MR_NV_ATOMIC(min, by < old ? by : old)
MR_NV_ATOMIC(max, old < by ? by : old)
#undef MR_NV_ATOMIC
