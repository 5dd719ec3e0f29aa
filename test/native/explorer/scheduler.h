// Runs the threads of a test one at a time, and again for every order of their steps within a bound.
//
// A step is an operation that another thread can observe: on an atomic, a mutex, a condition variable or a futex.
// Before each step the scheduler chooses the next thread. It first runs a thread until it waits, and then the first
// runnable one; later runs take every other choice, up to a number of switches per run, which finds races (most need
// one or two). It also chooses how long a store that is not sequentially consistent stays in the thread's store buffer,
// as on x86: until the thread's next read-modify-write, fence or lock. So it finds missing fences too.
//
// If every thread waits in a run, a wake was lost. Time is virtual: a wait with a time
// limit ends by the limit only when no other thread can run.
//
// The code under test includes sync.h, which replaces the standard library's threads by these functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace explorer {

struct Bounds {
  /// The most steps per run at which another thread runs than the default: the running one, or, if that waits, the
  /// first runnable one.
  int switches = 2;
  /// Stores that are held back.
  int delays = 1;
};

struct Report {
  uint64_t runs = 0;
  /// What went wrong in the last run, and its steps; empty if nothing did.
  std::string failure;
};

/// Calls `scenario` on a thread of its own for every order of steps within the bounds, or until one fails.
Report Explore(const Bounds& bounds, const std::function<void()>& scenario);

// ── For scenarios ──

/// Orders are explored only during this object's lifetime, so that setup runs in a single order.
class Window {
 public:
  Window();
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
};
/// Ends the exploration with this failure unless `is_true`.
void Expect(bool is_true, const char* what);
/// Starts a thread.
uint32_t Spawn(const char* name, std::function<void()> body);
void Join(uint32_t thread);

// ── For sync.h ──

/// Another thread may run here. `what` and `object` are for the report.
void Step(const char* what, const void* object);
/// The running thread waits on `object`; false when `limit_ns` (if not negative) ended the wait.
bool Wait(const void* object, int64_t limit_ns = -1);
void WakeOne(const void* object);
void WakeAll(const void* object);
void NameThread(const char* name);
[[nodiscard]] int64_t NowNs();

/// The value that the running thread sees at an address, including its own delayed stores.
[[nodiscard]] uint64_t Load(const void* address, uint32_t bytes);
/// A store that may be delayed.
void Store(void* address, uint64_t value, uint32_t bytes);
/// Publishes the running thread's delayed stores.
void Drain();

}  // namespace explorer
