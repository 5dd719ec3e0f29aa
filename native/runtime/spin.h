// When a thread of the runtime may look again and again instead of sleeping, and for how long.
#pragma once

#include <chrono>
#include <thread>

namespace millrace {

/// Longest look without sleeping: it covers short work, and a core is given up after it.
constexpr auto kSpin = std::chrono::microseconds(50);

/// On fewer than 4 cores a thread that spins may sit on the very core whose work it waits for.
inline bool MaySpin() {
  constexpr unsigned kSpinCores = 4;
  static const bool may_spin = std::thread::hardware_concurrency() >= kSpinCores;
  return may_spin;
}

}  // namespace millrace
