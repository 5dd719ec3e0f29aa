// The threads of one CPU device.
//
// The pool runs Runnables and knows neither streams nor kernels: it runs each scheduled Runnable once, on one thread,
// the most urgent first, in order of arrival at equal priority. A Runnable can also be *shared*: threads that would
// otherwise sleep then join it, which distributes the blocks of a grid over the cores.
//
// One mutex guards all decisions about running and sleeping, so a wake cannot be lost between a check of the list and
// the sleep. Sleeping threads wake by counted tokens: a burst of work costs one system call per thread that actually
// sleeps, and none while enough threads are already waking.
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

/// Least and most urgent stream priority; smaller is more urgent, as in CUDA.
inline constexpr int32_t kLeastPriority = 0;
inline constexpr int32_t kGreatestPriority = -5;

/// Starts a thread named `name` that receives none of the process's signals. Returns 0 or an error number.
[[nodiscard]] int StartQuietThread(const char* name, pthread_t* thread, void* (*entry)(void*), void* argument);
/// Every thread that runs kernels calls this first.
void EnterPoolThread(const char* name);

/// Work for a pool thread. Thread of Run(): backend.
class Runnable {
 public:
  explicit Runnable(int32_t priority) : priority_(priority) {}
  virtual ~Runnable() = default;
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  virtual void Run() = 0;
  [[nodiscard]] int32_t priority() const { return priority_.load(std::memory_order_relaxed); }

 protected:
  /// For a Runnable that several launches use, one after the other. A hint to the pool.
  void SetPriority(int32_t priority) { priority_.store(priority, std::memory_order_relaxed); }

 private:
  std::atomic<int32_t> priority_;
};

class ThreadPool {
 public:
  /// With `fuzzer`, threads take ready Runnables in random order.
  explicit ThreadPool(std::unique_ptr<ScheduleFuzzer> fuzzer = nullptr) : fuzzer_(std::move(fuzzer)) {}
  /// The threads have been joined, so any thread may drop the last reference.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Starts `count` threads. If the system refuses one, joins the others and fails.
  Status Start(uint32_t count);
  /// Runs all scheduled work, then joins the threads. Idempotent. Thread: channel.
  void Join();
  /// Null except in tests. Lives as long as the pool.
  [[nodiscard]] ScheduleFuzzer* fuzzer() const { return fuzzer_.get(); }
  [[nodiscard]] uint32_t thread_count() const { return static_cast<uint32_t>(threads_.size()); }

  /// Runs `runnable` once on one of the threads. Thread: any.
  void Schedule(std::shared_ptr<Runnable> runnable);
  /// Like Schedule, for a pool thread that ends its turn and looks for work next, so no other thread needs to wake.
  void PutBack(std::shared_ptr<Runnable> runnable);
  /// Lets up to `helpers` idle threads call Run() on the same object until `Withdraw`. Thread: any.
  void Share(std::shared_ptr<Runnable> runnable, uint32_t helpers);
  void Withdraw(const Runnable& runnable);
  /// Whether something at least as urgent waits for a thread. A hint: it may be out of date on return.
  [[nodiscard]] bool HasRival(int32_t priority) const {
    return most_urgent_.load(std::memory_order_relaxed) <= Level(priority);
  }

 private:
  static constexpr uint32_t kLevels = kLeastPriority - kGreatestPriority + 1;
  static constexpr uint32_t Level(int32_t priority) { return static_cast<uint32_t>(priority - kGreatestPriority); }

  struct ThreadStart {
    ThreadPool* pool;
    uint32_t index;
  };
  static void* ThreadEntry(void* start);
  void ThreadMain();
  /// These need `mutex_` and hold it on return; Spin releases it in between.
  [[nodiscard]] std::shared_ptr<Runnable> Pick();
  [[nodiscard]] std::shared_ptr<Runnable> PickAny();
  void Push(std::shared_ptr<Runnable> runnable);
  [[nodiscard]] uint32_t Grant(uint32_t wanted);
  [[nodiscard]] bool Spin(std::unique_lock<std::mutex>& lock);
  void UpdateHints();
  /// Sends `count` granted tokens. Call without the lock, which a woken thread takes.
  void Notify(uint32_t count);

  const std::unique_ptr<ScheduleFuzzer> fuzzer_;
  std::vector<pthread_t> threads_;  // Written by Start and Join only.
  std::vector<ThreadStart> starts_;

  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::array<std::deque<std::shared_ptr<Runnable>>, kLevels> ready_;
  uint32_t ready_count_ = 0;
  std::vector<std::shared_ptr<Runnable>> shared_;
  uint32_t sleepers_ = 0;  // Asleep, without a granted token.
  uint32_t granted_ = 0;   // Tokens on their way to a sleeping thread.
  uint32_t spinners_ = 0;
  bool is_closing_ = false;

  // Copies of the above for checks without the lock. No thread sleeps because of them.
  std::atomic<uint32_t> most_urgent_{kLevels};
  std::atomic<bool> has_work_{false};
};

}  // namespace millrace::cpu
