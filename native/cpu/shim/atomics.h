// Atomic functions with relaxed order, like CUDA's: code that needs an order uses a fence. The _system forms equal the
// device forms, since the blocks of a grid and the host are threads of one process.
#pragma once

#include "types.h"

template <class T>
inline constexpr bool mr_is_atomic = sizeof(T) == 4 || sizeof(T) == 8;
template <class T>
inline constexpr bool mr_is_atomic_integer = mr_is_integral<T> && mr_is_atomic<T>;

template <unsigned Size>
struct mr_bits;
template <>
struct mr_bits<2> {
  using type = unsigned short;
};
template <>
struct mr_bits<4> {
  using type = unsigned;
};
template <>
struct mr_bits<8> {
  using type = unsigned long long;
};

/// Replaces *address by change(*address) and returns the old value, where the processor has no instruction for it.
template <class T, class Change>
MR_INLINE T mr_atomic_update(T* address, Change change) {
  using Bits = typename mr_bits<sizeof(T)>::type;
  Bits* word = reinterpret_cast<Bits*>(address);
  Bits old = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const Bits next = __builtin_bit_cast(Bits, static_cast<T>(change(__builtin_bit_cast(T, old))));
    if (__atomic_compare_exchange_n(word, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return __builtin_bit_cast(T, old);
    }
  }
}

template <class T>
MR_INLINE T atomicAdd(T* address, mr_identity_t<T> value) {
  static_assert(mr_is_atomic<T>, "atomicAdd needs a 32- or 64-bit type.");
  if constexpr (mr_is_integral<T>) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
  } else {
    return mr_atomic_update(address, [=](T old) { return old + value; });
  }
}

#define MR_ATOMIC_INTEGER(name, expression)                                               \
  template <class T>                                                                      \
  MR_INLINE T name(T* address, mr_identity_t<T> value) {                                  \
    static_assert(mr_is_atomic_integer<T>, #name " needs a 32- or 64-bit integer type."); \
    return expression;                                                                    \
  }
MR_ATOMIC_INTEGER(atomicSub, __atomic_fetch_sub(address, value, __ATOMIC_RELAXED))
MR_ATOMIC_INTEGER(atomicAnd, __atomic_fetch_and(address, value, __ATOMIC_RELAXED))
MR_ATOMIC_INTEGER(atomicOr, __atomic_fetch_or(address, value, __ATOMIC_RELAXED))
MR_ATOMIC_INTEGER(atomicXor, __atomic_fetch_xor(address, value, __ATOMIC_RELAXED))
MR_ATOMIC_INTEGER(atomicMin, mr_atomic_update(address, [=](T old) { return value < old ? value : old; }))
MR_ATOMIC_INTEGER(atomicMax, mr_atomic_update(address, [=](T old) { return old < value ? value : old; }))
/// Increments up to `value`, then restarts at 0.
MR_ATOMIC_INTEGER(atomicInc, mr_atomic_update(address, [=](T old) { return old >= value ? T(0) : old + 1; }))
/// Decrements down to 0, then restarts at `value`.
MR_ATOMIC_INTEGER(atomicDec,
                  mr_atomic_update(address, [=](T old) { return old == 0 || old > value ? value : old - 1; }))
#undef MR_ATOMIC_INTEGER

template <class T>
MR_INLINE T atomicExch(T* address, mr_identity_t<T> value) {
  static_assert(mr_is_atomic<T>, "atomicExch needs a 32- or 64-bit type.");
  using Bits = typename mr_bits<sizeof(T)>::type;
  Bits* word = reinterpret_cast<Bits*>(address);
  return __builtin_bit_cast(T, __atomic_exchange_n(word, __builtin_bit_cast(Bits, value), __ATOMIC_RELAXED));
}

template <class T>
MR_INLINE T atomicCAS(T* address, mr_identity_t<T> compare, mr_identity_t<T> value) {
  static_assert(mr_is_integral<T> && sizeof(T) >= 2, "atomicCAS needs a 16-, 32- or 64-bit integer type.");
  __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return compare;
}

#define MR_ATOMIC_SYSTEM(name)                         \
  template <class T, class... V>                       \
  MR_INLINE T name##_system(T* address, V... values) { \
    return name(address, values...);                   \
  }
MR_ATOMIC_SYSTEM(atomicAdd)
MR_ATOMIC_SYSTEM(atomicSub)
MR_ATOMIC_SYSTEM(atomicAnd)
MR_ATOMIC_SYSTEM(atomicOr)
MR_ATOMIC_SYSTEM(atomicXor)
MR_ATOMIC_SYSTEM(atomicMin)
MR_ATOMIC_SYSTEM(atomicMax)
MR_ATOMIC_SYSTEM(atomicInc)
MR_ATOMIC_SYSTEM(atomicDec)
MR_ATOMIC_SYSTEM(atomicExch)
MR_ATOMIC_SYSTEM(atomicCAS)
#undef MR_ATOMIC_SYSTEM

MR_INLINE void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
MR_INLINE void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
/// The threads of a block run on one thread here, so only the compiler must not reorder accesses.
MR_INLINE void __threadfence_block() {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
