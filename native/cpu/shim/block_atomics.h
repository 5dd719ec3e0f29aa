// Atomic functions of block scope. A block never leaves its pool thread, and its threads switch only where they wait,
// so a plain operation is atomic within the block. Addresses that other blocks use too need the device forms.
#pragma once

#include "atomics.h"

#if defined(MR_FINDS_RACES)
// So that they count as atomic.
#define MR_BLOCK_ATOMIC(name, accepts, expression)               \
  template <class T>                                             \
  MR_INLINE T name##_block(T* address, mr_identity_t<T> value) { \
    return name(address, value);                                 \
  }
#else
#define MR_BLOCK_ATOMIC(name, accepts, expression)                      \
  template <class T>                                                    \
  MR_INLINE T name##_block(T* address, mr_identity_t<T> value) {        \
    static_assert(accepts<T>, #name "_block does not take this type."); \
    const T old = *address;                                             \
    *address = static_cast<T>(expression);                              \
    return old;                                                         \
  }
#endif
MR_BLOCK_ATOMIC(atomicAdd, mr_is_atomic, old + value)
MR_BLOCK_ATOMIC(atomicSub, mr_is_atomic_integer, old - value)
MR_BLOCK_ATOMIC(atomicAnd, mr_is_atomic_integer, old& value)
MR_BLOCK_ATOMIC(atomicOr, mr_is_atomic_integer, old | value)
MR_BLOCK_ATOMIC(atomicXor, mr_is_atomic_integer, old ^ value)
MR_BLOCK_ATOMIC(atomicMin, mr_is_atomic_integer, value < old ? value : old)
MR_BLOCK_ATOMIC(atomicMax, mr_is_atomic_integer, old < value ? value : old)
MR_BLOCK_ATOMIC(atomicInc, mr_is_atomic_integer, old >= value ? T(0) : old + 1)
MR_BLOCK_ATOMIC(atomicDec, mr_is_atomic_integer, old == 0 || old > value ? value : old - 1)
MR_BLOCK_ATOMIC(atomicExch, mr_is_atomic, value)
#undef MR_BLOCK_ATOMIC

template <class T>
MR_INLINE T atomicCAS_block(T* address, mr_identity_t<T> compare, mr_identity_t<T> value) {
  static_assert(mr_is_integral<T> && sizeof(T) >= 2, "atomicCAS_block needs a 16-, 32- or 64-bit integer type.");
#if defined(MR_FINDS_RACES)
  return atomicCAS(address, compare, value);
#else
  const T old = *address;
  if (old == compare) *address = value;
  return old;
#endif
}
