// Whether a thread of the runtime may spin before it sleeps, and for how long.
#pragma once

#include <chrono>
#include <thread>

namespace millrace {

/// The longest spin: it covers short work, and then frees the core.
constexpr auto kSpin = std::chrono::microseconds(50);

/// On fewer than 4 cores a spinning thread may occupy the core of the thread that it waits for.
inline bool MaySpin() {
  constexpr unsigned kSpinCores = 4;
  static const bool may_spin = std::thread::hardware_concurrency() >= kSpinCores;
  return may_spin;
}

}  // namespace millrace
