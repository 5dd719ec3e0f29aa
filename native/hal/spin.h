// Whether a thread may spin before it sleeps, for how long, and the pause instruction of such loops.
#pragma once

#include <chrono>
#include <thread>

namespace millrace {

/// The spin of a thread that nobody asked to stay awake: it covers short work, and then frees the core.
constexpr auto kSpin = std::chrono::microseconds(50);

/// On fewer than 4 cores a spinning thread may occupy the core of the thread that it waits for.
inline bool MaySpin() {
  constexpr unsigned kSpinCores = 4;
  static const bool may_spin = std::thread::hardware_concurrency() >= kSpinCores;
  return may_spin;
}

inline void RelaxCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace millrace
