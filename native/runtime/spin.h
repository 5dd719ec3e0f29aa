// Whether a thread of the runtime may spin before it sleeps, and for how long.
#pragma once

#include <algorithm>
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

/// How a thread waits for its next work: by the times that passed before the latest works came. The wake of a sleeping
/// thread takes 30 to 80 us, so a program that submits every 2 ms finds the thread spinning, for half of the time. A
/// program with longer pauses finds it asleep, and after `kLongest` without work it always sleeps.
/// Thread: the one that waits.
class WorkRhythm {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::nanoseconds;

  /// Programs with pauses that are shorter on average are followed. The limit of an idle device, 0.1 % of a core,
  /// counts from 10 ms after the last submission on.
  static constexpr Span kLongest = std::chrono::milliseconds(4);

  /// There is no work left.
  void Rest(Time now) { since_ = now; }

  /// There is work again, after `Rest`.
  void Work(Time now) {
    const Span paused = std::min<Span>(now - since_, kCounted);
    // The records of one burst, which the usual spin covers, do not tell when the next burst comes.
    if (paused <= kSpin) return;
    mean_ += (paused - mean_) / 4;
  }

  /// When `Rest` was called.
  [[nodiscard]] Time since() const { return since_; }

  /// After kSpin the thread sleeps until then: half of the pause, so that it occupies a core for the other half at
  /// most.
  [[nodiscard]] Time NapUntil() const { return IsFollowed() ? since_ + mean_ / 2 : since_; }

  /// Then the thread spins until this time, and then it sleeps until there is work.
  [[nodiscard]] Time SpinUntil() const { return since_ + (IsFollowed() ? std::min<Span>(2 * mean_, kLongest) : kSpin); }

 private:
  /// A longer pause counts as this one, so that a rhythm is found again soon after it: one of 2 ms after eight pauses.
  static constexpr Span kCounted = 4 * kLongest;

  [[nodiscard]] bool IsFollowed() const { return mean_ <= kLongest; }

  Time since_{};
  Span mean_ = kCounted;
};

}  // namespace millrace
