// The threads of one CPU device.
//
// The pool knows neither streams nor kernels. It runs Runnables: each scheduled one on one thread, once, the most
// urgent first and equals in order of arrival. A Runnable may also be *shared*: then threads that would otherwise sleep
// join it, which is how the blocks of one grid spread over the cores.
//
// Everything that decides who runs and who sleeps is guarded by one mutex, so a wake cannot fall between a look at the
// list and going to sleep. A sleeper is woken by a granted token and not by hope: each token is counted, so a burst of
// work costs one system call for each thread that really sleeps, and none while enough of them are already on their
// way.
#pragma once

#include <pthread.h>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cpu/schedule_fuzzer.h"
#include "hal/status.h"

namespace millrace::cpu {

/// Least and most urgent priority of a stream; smaller is more urgent, as in CUDA.
inline constexpr int32_t kLeastPriority = 0;
inline constexpr int32_t kGreatestPriority = -5;

/// Starts a thread that will be called `name` and takes no signals of the process. 0 or an error number.
[[nodiscard]] int StartQuietThread(const char* name, pthread_t* thread, void* (*entry)(void*), void* argument);
/// First thing of a thread that runs kernels.
void EnterPoolThread(const char* name);

/// Something a pool thread can run. Thread of Run(): backend.
class Runnable {
 public:
  explicit Runnable(int32_t priority) : priority_(priority) {}
  virtual ~Runnable() = default;
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  virtual void Run() = 0;
  [[nodiscard]] int32_t priority() const { return priority_; }

 private:
  const int32_t priority_;
};

class Pool {
 public:
  /// With `fuzzer`, threads take what is ready in any order.
  explicit Pool(std::unique_ptr<ScheduleFuzzer> fuzzer = nullptr) : fuzzer_(std::move(fuzzer)) {}
  /// The threads were joined before, so whoever drops the last reference may be any thread.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Starts `count` threads. Fails when the system refuses one; the others are joined again.
  Status Start(uint32_t count);
  /// Runs what is scheduled, then joins the threads. Idempotent. Thread: channel.
  void Join();
  /// Null but in tests. Lives as long as the pool.
  [[nodiscard]] ScheduleFuzzer* fuzzer() const { return fuzzer_.get(); }
  [[nodiscard]] uint32_t thread_count() const { return static_cast<uint32_t>(threads_.size()); }

  /// Runs `runnable` once on one of the threads. Thread: any.
  void Schedule(std::shared_ptr<Runnable> runnable);
  /// As Schedule, for a pool thread that gives up its turn and looks for work next, so nobody else need wake for it.
  void PutBack(std::shared_ptr<Runnable> runnable);
  /// Lets up to `helpers` idle threads call Run() on the same object until `Withdraw`. Thread: any.
  void Share(std::shared_ptr<Runnable> runnable, uint32_t helpers);
  void Withdraw(const Runnable& runnable);
  /// Whether something at least as urgent waits for a thread. A hint: it may be out of date when it returns.
  [[nodiscard]] bool HasRival(int32_t priority) const {
    return most_urgent_.load(std::memory_order_relaxed) <= Level(priority);
  }

 private:
  static constexpr uint32_t kLevels = kLeastPriority - kGreatestPriority + 1;
  static constexpr uint32_t Level(int32_t priority) { return static_cast<uint32_t>(priority - kGreatestPriority); }

  struct ThreadStart {
    Pool* pool;
    uint32_t index;
  };
  static void* ThreadEntry(void* start);
  void ThreadMain();
  /// These need `mutex_`, and hold it on return too; Spin lets go of it in between.
  [[nodiscard]] std::shared_ptr<Runnable> Pick();
  [[nodiscard]] std::shared_ptr<Runnable> PickAny();
  void Push(std::shared_ptr<Runnable> runnable);
  [[nodiscard]] uint32_t Grant(uint32_t wanted);
  [[nodiscard]] bool Spin(std::unique_lock<std::mutex>& lock);
  void UpdateHints();
  /// Sends `count` granted tokens. Without the lock, so that a woken thread does not run into it.
  void Notify(uint32_t count);

  const std::unique_ptr<ScheduleFuzzer> fuzzer_;
  std::vector<pthread_t> threads_;  // Written by Start and Join only.
  std::vector<ThreadStart> starts_;
  bool may_spin_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::array<std::deque<std::shared_ptr<Runnable>>, kLevels> ready_;
  uint32_t ready_count_ = 0;
  std::vector<std::shared_ptr<Runnable>> shared_;
  uint32_t sleepers_ = 0;  // Asleep and not yet granted a token.
  uint32_t granted_ = 0;   // Tokens on their way to a sleeper.
  uint32_t spinners_ = 0;
  bool is_closing_ = false;

  // Copies of the above for threads that look without the lock. Never the reason to sleep.
  std::atomic<uint32_t> most_urgent_{kLevels};
  std::atomic<bool> has_work_{false};
};

}  // namespace millrace::cpu
