// Keywords of CUDA C++, names that need no include, and the few type traits that the other headers need.
#pragma once

// Source that this package emits tests it. For source of users, the compiler's command defines CUDA's macros, too.
#define MILLRACE_CPU_DEVICE 1

#define MR_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define MR_EXPORT __attribute__((visibility("default"), flatten))
#define MR_EXPORT_DATA __attribute__((visibility("default")))
#else
// Exported although -fwhole-program makes everything else private, which lets g++ keep globals in registers.
#define MR_EXPORT __attribute__((visibility("default"), externally_visible, flatten))
#define MR_EXPORT_DATA __attribute__((visibility("default"), externally_visible))
#endif

// A kernel must be inlined into its thread loop, or the loop does not vectorise.
#define __global__ inline __attribute__((always_inline))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#if defined(MR_MAY_INLINE)
#define __forceinline__ inline
#else
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// A block never leaves its pool thread, which runs one block at a time.
#define __shared__ static thread_local
/// A variable of the shim, which lies apart (thread_variables.h).
#define MR_OF_THREAD static thread_local __attribute__((section(".tdata.mr")))

/// In a loop that waits for another thread. Most processors of arm64 do nothing for such an instruction.
MR_INLINE void mr_relax_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// clang has _Float16 for x86 since version 15, and g++ has it in C++ for arm64 since version 13; __fp16, which only
// stores and converts, exists in all versions.
#if (defined(__clang__) && __clang_major__ < 15) || (!defined(__clang__) && defined(__aarch64__) && __GNUC__ < 13)
#define _Float16 __fp16
#endif

#define NULL __null
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long long clock_t;

// Of kernel_headers, like every header that a source includes by its own name.
#include "mr_types.h"

template <class T, class U>
inline constexpr bool mr_is_same = false;
template <class T>
inline constexpr bool mr_is_same<T, T> = true;

template <class T>
struct mr_identity {
  using type = T;
};
/// Excludes a parameter from template argument deduction.
template <class T>
using mr_identity_t = typename mr_identity<T>::type;

template <bool Condition, class T>
struct mr_enable_if {};
template <class T>
struct mr_enable_if<true, T> {
  using type = T;
};
template <bool Condition, class T>
using mr_enable_if_t = typename mr_enable_if<Condition, T>::type;

template <class T>
inline constexpr bool mr_is_integral =
    mr_is_same<T, bool> || mr_is_same<T, char> || mr_is_same<T, signed char> || mr_is_same<T, unsigned char> ||
    mr_is_same<T, short> || mr_is_same<T, unsigned short> || mr_is_same<T, int> || mr_is_same<T, unsigned> ||
    mr_is_same<T, long> || mr_is_same<T, unsigned long> || mr_is_same<T, long long> ||
    mr_is_same<T, unsigned long long>;

// For functions that -fsanitize=thread leaves alone. Clang's no_sanitize still instruments atomic accesses.
#if defined(MR_FINDS_RACES) && defined(__clang__)
#define MR_NOT_INSTRUMENTED no_sanitize("thread"), disable_sanitizer_instrumentation
#elif defined(MR_FINDS_RACES)
#define MR_NOT_INSTRUMENTED no_sanitize("thread")
#else
#define MR_NOT_INSTRUMENTED
#endif

/// Before a call out of the kernel: a stack that is too full overflows here, before the runtime has changed any state.
static __attribute__((noinline, MR_NOT_INSTRUMENTED)) void mr_need_stack() {
  // Reading allocates no memory.
  (void)*(static_cast<volatile const char*>(__builtin_frame_address(0)) - 65536);
}
