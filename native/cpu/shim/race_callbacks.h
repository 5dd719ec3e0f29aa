// The functions that compilers call before each access to memory with -fsanitize=thread, in place of the sanitizer's
// library. Accesses to shared memory go to the device (MrRaces).
//
// The compilers declare some of these names with types of their own, so the functions have other names in C++.
#pragma once

#include "race_checks.h"

extern "C" {
MR_EXPORT_DATA extern const unsigned mr_finds_races;
const unsigned mr_finds_races = 1;

#if defined(__clang__)
#define MR_CALLED __attribute__((noinline, used, MR_NOT_INSTRUMENTED, visibility("hidden")))
#else
#define MR_CALLED __attribute__((noinline, used, externally_visible, MR_NOT_INSTRUMENTED, visibility("hidden")))
#endif
#define MR_CALLBACK(result, name, symbol, ...)                    \
  MR_CALLED result mr_called_##name(__VA_ARGS__) __asm__(symbol); \
  MR_CALLED result mr_called_##name(__VA_ARGS__)
#define MR_SANITIZER(result, name, ...) MR_CALLBACK(result, name, "__tsan_" #name, __VA_ARGS__)
#define MR_PLACE __builtin_return_address(0)

MR_UNWATCHED void mr_watch(const void* address, unsigned long long bytes, unsigned how, const void* place) {
  MrRaces* const races = mr_races;
  if (races == nullptr || races->thread == mr_race_no_thread) return;
  const char* const at = static_cast<const char*>(address);
  if (static_cast<unsigned long long>(at - races->variables) >= races->variable_bytes &&
      static_cast<unsigned long long>(at - races->dynamic) >= races->dynamic_bytes) {
    return;
  }
  mr_need_stack();
  races->access(races, address, bytes, how, place);
}
MR_UNWATCHED void mr_watch_atomic(const volatile void* address, unsigned long long bytes, unsigned how, int order,
                                  const void* place) {
  MrRaces* const races = mr_races;
  if (races == nullptr || races->thread == mr_race_no_thread) return;
  mr_need_stack();
  races->atomic(races, const_cast<const void*>(address), bytes,
                how | static_cast<unsigned>(order) << mr_race_order_shift, place);
}
MR_UNWATCHED void mr_watch_fence() {
  if (mr_races != nullptr && mr_races->thread != mr_race_no_thread) mr_tell(mr_race_fence);
}

MR_SANITIZER(void, init) {}
MR_SANITIZER(void, func_entry, void*) {}
MR_SANITIZER(void, func_exit) {}
MR_SANITIZER(void, vptr_update, void**, void*) {}
MR_SANITIZER(void, vptr_read, void**) {}

#define MR_ACCESSES(bytes)                                                                               \
  MR_SANITIZER(void, read##bytes, void* at) { mr_watch(at, bytes, 0, MR_PLACE); }                        \
  MR_SANITIZER(void, write##bytes, void* at) { mr_watch(at, bytes, mr_race_write, MR_PLACE); }           \
  MR_SANITIZER(void, unaligned_read##bytes, void* at) { mr_watch(at, bytes, 0, MR_PLACE); }              \
  MR_SANITIZER(void, unaligned_write##bytes, void* at) { mr_watch(at, bytes, mr_race_write, MR_PLACE); } \
  MR_SANITIZER(void, read_write##bytes, void* at) { mr_watch(at, bytes, mr_race_write, MR_PLACE); }      \
  MR_SANITIZER(void, unaligned_read_write##bytes, void* at) { mr_watch(at, bytes, mr_race_write, MR_PLACE); }
MR_ACCESSES(1)
MR_ACCESSES(2)
MR_ACCESSES(4)
MR_ACCESSES(8)
MR_ACCESSES(16)
#undef MR_ACCESSES
MR_SANITIZER(void, read_range, void* at, unsigned long bytes) {
  mr_watch(at, bytes, 0, MR_PLACE);
}
MR_SANITIZER(void, write_range, void* at, unsigned long bytes) {
  mr_watch(at, bytes, mr_race_write, MR_PLACE);
}

MR_SANITIZER(void, atomic_thread_fence, int order) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  mr_watch_fence();
}
MR_SANITIZER(void, atomic_signal_fence, int order) {
  mr_watch_fence();
}

// Every order is the strongest here.
#define MR_ATOMIC(bits, T, name, expression, ...)                              \
  MR_SANITIZER(T, atomic##bits##_##name, volatile T* at, T value, int order) { \
    mr_watch_atomic(at, bits / 8, mr_race_write, order, MR_PLACE);             \
    return expression(at, value, __ATOMIC_SEQ_CST);                            \
  }
#define MR_COMPARE(bits, T, name)                                                                                   \
  MR_SANITIZER(int, atomic##bits##_compare_exchange_##name, volatile T* at, T* expected, T value, int order, int) { \
    mr_watch_atomic(at, bits / 8, mr_race_write, order, MR_PLACE);                                                  \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
  }
#define MR_ATOMICS(bits, T)                                                                                   \
  MR_SANITIZER(T, atomic##bits##_load, const volatile T* at, int order) {                                     \
    mr_watch_atomic(at, bits / 8, 0, order, MR_PLACE);                                                        \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                             \
  }                                                                                                           \
  MR_SANITIZER(void, atomic##bits##_store, volatile T* at, T value, int order) {                              \
    mr_watch_atomic(at, bits / 8, mr_race_write, order, MR_PLACE);                                            \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                            \
  }                                                                                                           \
  MR_ATOMIC(bits, T, exchange, __atomic_exchange_n)                                                           \
  MR_ATOMIC(bits, T, fetch_add, __atomic_fetch_add)                                                           \
  MR_ATOMIC(bits, T, fetch_sub, __atomic_fetch_sub)                                                           \
  MR_ATOMIC(bits, T, fetch_and, __atomic_fetch_and)                                                           \
  MR_ATOMIC(bits, T, fetch_or, __atomic_fetch_or)                                                             \
  MR_ATOMIC(bits, T, fetch_xor, __atomic_fetch_xor)                                                           \
  MR_ATOMIC(bits, T, fetch_nand, __atomic_fetch_nand)                                                         \
  MR_COMPARE(bits, T, strong)                                                                                 \
  MR_COMPARE(bits, T, weak)                                                                                   \
  MR_SANITIZER(T, atomic##bits##_compare_exchange_val, volatile T* at, T expected, T value, int order, int) { \
    mr_watch_atomic(at, bits / 8, mr_race_write, order, MR_PLACE);                                            \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
    return expected;                                                                                          \
  }
MR_ATOMICS(8, unsigned char)
MR_ATOMICS(16, unsigned short)
MR_ATOMICS(32, unsigned)
MR_ATOMICS(64, unsigned long long)
#undef MR_ATOMICS
#undef MR_COMPARE
#undef MR_ATOMIC

// Copies of memory, of the source and of the compiler. The compiler replaces none of these loops by a call of itself.
MR_UNWATCHED void* mr_copy_up(void* to, const void* from, unsigned long bytes) {
#if defined(__x86_64__)
  void* const result = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return result;
#else
  for (unsigned long at = 0; at < bytes; ++at) {
    static_cast<char*>(to)[at] = static_cast<const char*>(from)[at];
    asm volatile("" : : : "memory");
  }
  return to;
#endif
}
MR_UNWATCHED void* mr_copy(void* to, const void* from, unsigned long bytes, const void* place) {
  if (bytes == 0) return to;
  mr_watch(from, bytes, 0, place);
  mr_watch(to, bytes, mr_race_write, place);
  if (static_cast<unsigned long>(static_cast<char*>(to) - static_cast<const char*>(from)) >= bytes) {
    return mr_copy_up(to, from, bytes);
  }
#if defined(__x86_64__)
  const char* last_from = static_cast<const char*>(from) + bytes - 1;
  char* last_to = static_cast<char*>(to) + bytes - 1;
  asm volatile("std\n\trep movsb\n\tcld" : "+D"(last_to), "+S"(last_from), "+c"(bytes) : : "memory");
#else
  while (bytes-- > 0) {
    static_cast<char*>(to)[bytes] = static_cast<const char*>(from)[bytes];
    asm volatile("" : : : "memory");
  }
#endif
  return to;
}
MR_UNWATCHED void* mr_set(void* to, int value, unsigned long bytes, const void* place) {
  if (bytes == 0) return to;
  mr_watch(to, bytes, mr_race_write, place);
#if defined(__x86_64__)
  void* at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
#else
  for (unsigned long at = 0; at < bytes; ++at) {
    static_cast<char*>(to)[at] = static_cast<char>(value);
    asm volatile("" : : : "memory");
  }
#endif
  return to;
}
#define MR_COPIES(prefix, symbol)                                                                          \
  MR_CALLBACK(void*, prefix##memcpy, symbol "memcpy", void* to, const void* from, unsigned long bytes) {   \
    return mr_copy(to, from, bytes, MR_PLACE);                                                             \
  }                                                                                                        \
  MR_CALLBACK(void*, prefix##memmove, symbol "memmove", void* to, const void* from, unsigned long bytes) { \
    return mr_copy(to, from, bytes, MR_PLACE);                                                             \
  }                                                                                                        \
  MR_CALLBACK(void*, prefix##memset, symbol "memset", void* to, int value, unsigned long bytes) {          \
    return mr_set(to, value, bytes, MR_PLACE);                                                             \
  }
MR_COPIES(, "")
#if defined(__clang__)
MR_COPIES(sanitizer_, "__tsan_")
#endif
#undef MR_COPIES
}
