// Integer intrinsics, cached loads and stores, clocks, printf and assert.
#pragma once

#include "conversions.h"

MR_INLINE int __popc(unsigned x) {
  return __builtin_popcount(x);
}
MR_INLINE int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
MR_INLINE int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
MR_INLINE int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
MR_INLINE int __ffs(int x) {
  return __builtin_ffs(x);
}
MR_INLINE int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
MR_INLINE unsigned __brev(unsigned x) {
  x = __builtin_bswap32(x);
  x = ((x & 0x0f0f0f0fu) << 4) | ((x >> 4) & 0x0f0f0f0fu);
  x = ((x & 0x33333333u) << 2) | ((x >> 2) & 0x33333333u);
  return ((x & 0x55555555u) << 1) | ((x >> 1) & 0x55555555u);
}
MR_INLINE unsigned long long __brevll(unsigned long long x) {
  return (static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32) |
         __brev(static_cast<unsigned>(x >> 32));
}
/// Four of the eight bytes of y:x, each selected by a nibble's low three bits; its high bit replicates the byte's sign.
MR_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (static_cast<unsigned long long>(y) << 32) | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = (selector >> (4 * i)) & 15u;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7u))) & 255u;
    if (nibble & 8u) byte = byte & 128u ? 255u : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
MR_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((((static_cast<unsigned long long>(high) << 32) | low) << (shift & 31u)) >> 32);
}
MR_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32) | low) >> (shift & 31u));
}
MR_INLINE int __mul24(int x, int y) {
  return static_cast<int>(static_cast<unsigned>((x << 8) >> 8) * static_cast<unsigned>((y << 8) >> 8));
}
MR_INLINE unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xffffffu) * (y & 0xffffffu);
}
MR_INLINE int __mulhi(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) * y) >> 32);
}
MR_INLINE unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) * y) >> 32);
}
MR_INLINE long long __mul64hi(long long x, long long y) {
  return static_cast<long long>((static_cast<__int128>(x) * y) >> 64);
}
MR_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}
MR_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return z + (x < y ? y - x : x - y);
}
MR_INLINE unsigned __sad(int x, int y, unsigned z) {
  return z + (x < y ? static_cast<unsigned>(y) - static_cast<unsigned>(x)
                    : static_cast<unsigned>(x) - static_cast<unsigned>(y));
}
MR_INLINE int __hadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y) >> 1);
}
MR_INLINE unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1);
}

MR_INLINE int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1);
}
MR_INLINE unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y + 1) >> 1);
}
/// Like the plain forms, but a shift by 32 or more shifts by 32.
MR_INLINE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32u ? low : __funnelshift_l(low, high, shift);
}
MR_INLINE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32u ? high : __funnelshift_r(low, high, shift);
}
/// The sum of four byte products (or of two halfword products with the low or high byte pair) and `sum`.
template <class Byte, class T>
MR_INLINE T mr_dot_bytes(T a, T b, T sum) {
  for (int i = 0; i < 32; i += 8) sum += static_cast<Byte>(a >> i) * static_cast<Byte>(b >> i);
  return sum;
}
template <class Half, class Byte, class T>
MR_INLINE T mr_dot_halves(T a, T b, T sum, int from) {
  return sum + static_cast<Half>(a) * static_cast<Byte>(b >> from) +
         static_cast<Half>(a >> 16) * static_cast<Byte>(b >> (from + 8));
}
MR_INLINE int __dp4a(int a, int b, int sum) {
  return mr_dot_bytes<signed char>(a, b, sum);
}
MR_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  return mr_dot_bytes<unsigned char>(a, b, sum);
}
MR_INLINE int __dp2a_lo(int a, int b, int sum) {
  return mr_dot_halves<short, signed char>(a, b, sum, 0);
}
MR_INLINE unsigned __dp2a_lo(unsigned a, unsigned b, unsigned sum) {
  return mr_dot_halves<unsigned short, unsigned char>(a, b, sum, 0);
}
MR_INLINE int __dp2a_hi(int a, int b, int sum) {
  return mr_dot_halves<short, signed char>(a, b, sum, 16);
}
MR_INLINE unsigned __dp2a_hi(unsigned a, unsigned b, unsigned sum) {
  return mr_dot_halves<unsigned short, unsigned char>(a, b, sum, 16);
}
/// The position of the offset-th set bit of `mask` at or above `base`, or below it; all ones if there is none.
MR_INLINE unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return base < 32u && (mask >> base & 1u) ? base : 0xffffffffu;
  const int step = offset < 0 ? -1 : 1;
  int left = offset < 0 ? -offset : offset;
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
    if ((mask >> bit & 1u) && --left == 0) return static_cast<unsigned>(bit);
  }
  return 0xffffffffu;
}

extern "C" void* memcpy(void*, const void*, size_t) noexcept;
extern "C" void* memmove(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;

// Cache hints have no effect here.
#define MR_LOAD(name)                  \
  template <class T>                   \
  MR_INLINE T name(const T* address) { \
    return *address;                   \
  }
MR_LOAD(__ldg)
MR_LOAD(__ldcg)
MR_LOAD(__ldca)
MR_LOAD(__ldcs)
MR_LOAD(__ldlu)
MR_LOAD(__ldcv)
#undef MR_LOAD
#define MR_STORE(name)                                      \
  template <class T>                                        \
  MR_INLINE void name(T* address, mr_identity_t<T> value) { \
    *address = value;                                       \
  }
MR_STORE(__stwb)
MR_STORE(__stcg)
MR_STORE(__stcs)
MR_STORE(__stwt)
#undef MR_STORE

#if !defined(__clang__)
#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#endif
#define __trap __builtin_trap

#if defined(__x86_64__)
MR_INLINE long long clock64() {
  return static_cast<long long>(__builtin_ia32_rdtsc());
}
#else
/// Calls clock_gettime with CLOCK_MONOTONIC (1), in nanoseconds.
extern "C" int mr_clock_gettime(int, long*) __asm__("clock_gettime");
MR_INLINE long long clock64() {
  long time[2];
  mr_clock_gettime(1, time);
  return time[0] * 1000000000ll + time[1];
}
#endif
MR_INLINE clock_t clock() {
  return clock64();
}

extern "C" int mr_nanosleep(const long* seconds_and_nanoseconds, long* remaining) __asm__("nanosleep");
MR_INLINE void __nanosleep(unsigned ns) {
  const long time[2] = {static_cast<long>(ns / 1000000000u), static_cast<long>(ns % 1000000000u)};
  mr_nanosleep(time, nullptr);
}

// A single write per call, so that lines of different threads do not interleave and nothing stays buffered.
extern "C" int mr_dprintf(int file, const char* format, ...) __asm__("dprintf");
/// Converts an index, which is a class object here, for a variadic function.
template <class T>
MR_INLINE T mr_printable(T value) {
  return value;
}
MR_INLINE unsigned mr_printable(mr_index value) {
  return value;
}
MR_INLINE unsigned mr_printable(mr_product value) {
  return value;
}
template <class... Values>
MR_INLINE int printf(const char* format, Values... values) {
  mr_need_stack();
  return mr_dprintf(1, format, mr_printable(values)...);
}

extern "C" [[noreturn]] void mr_abort() __asm__("abort");
/// Fallback for source that hides its assertions in its own headers (others use assertions.h): ends the process.
[[noreturn]] __attribute__((noinline, cold)) inline void mr_assertion_ends(const char* text, const char* file, int line,
                                                                           uint3 block, uint3 thread) {
  mr_dprintf(2, "%s:%d: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line, block.x, block.y,
             block.z, thread.x, thread.y, thread.z, text);
  mr_abort();
}
#include "assert_macro.h"
