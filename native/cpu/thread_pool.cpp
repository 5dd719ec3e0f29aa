#include "cpu/thread_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "hal/spin.h"
#include "hal/thread.h"

namespace millrace::cpu {
namespace {

// Kernels must not starve the JavaScript thread of the same machine (measured: the event loop's p99 delay fell from
// 4.85 to 1.43 ms).
constexpr int kNice = 10;
constexpr int kMaxNice = 19;
// Where kernels are what the machine is for, other programs and the event loop itself must not starve them.
constexpr const char* kNiceVariable = "MILLRACE_CPU_NICE";

int Nice() {
  static const int nice = [] {
    const char* text = std::getenv(kNiceVariable);
    char* end = nullptr;
    const long given = text == nullptr || *text == '\0' ? kNice : std::strtol(text, &end, 10);
    const bool is_whole = end == nullptr || *end == '\0';
    return is_whole && given >= 0 && given <= kMaxNice ? static_cast<int>(given) : kNice;
  }();
  return nice;
}

constexpr uint32_t kMaxSpinners = 2;

// Independent of the process's limit. Kernels have a stack of their own (kernel_memory.h).
constexpr size_t kStackBytes = size_t{8} << 20;

}  // namespace

int StartQuietThread(const char* name, pthread_t* thread, void* (*entry)(void*), void* argument) {
  // The process's signals belong to its main thread; new threads inherit their creator's mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    error = pthread_attr_setstacksize(&attributes, kStackBytes);
    if (error == 0) error = CreateThread(name, thread, &attributes, entry, argument);
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void EnterPoolThread(const char* name) {
  pthread_setname_np(pthread_self(), name);
  // On Linux, PRIO_PROCESS with a thread id applies to that thread.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), Nice());
}

ThreadPool::~ThreadPool() {
  MR_CHECK(threads_.empty());
}

Status ThreadPool::Start(uint32_t count) {
  starts_.resize(count);
  threads_.reserve(count);

  int error = 0;
  for (uint32_t index = 0; index < count && error == 0; ++index) {
    starts_[index] = {this, index};
    pthread_t thread;
    error = StartQuietThread("mr-cpu", &thread, &ThreadPool::ThreadEntry, &starts_[index]);
    if (error == 0) threads_.push_back(thread);
  }

  if (error == 0) return {};
  Join();
  return {StatusCode::kUnavailable, "starting the threads of the CPU device", error};
}

void ThreadPool::Join() {
  {
    std::lock_guard lock(mutex_);
    is_closing_ = true;
    granted_ += std::exchange(sleepers_, 0);
  }
  wake_.notify_all();
  for (pthread_t thread : threads_) pthread_join(thread, nullptr);
  threads_.clear();
}

void ThreadPool::Schedule(std::shared_ptr<Runnable> runnable) {
  uint32_t count;
  {
    std::lock_guard lock(mutex_);
    MR_CHECK(!is_closing_);
    Push(std::move(runnable));
    // Spinning and woken threads check the list, under the lock, before they sleep again.
    count = ready_count_ > spinners_ + granted_ ? Grant(1) : 0;
  }
  Notify(count);
}

void ThreadPool::PutBack(std::shared_ptr<Runnable> runnable) {
  std::lock_guard lock(mutex_);
  Push(std::move(runnable));
}

void ThreadPool::Share(std::shared_ptr<Runnable> runnable, uint32_t helpers) {
  uint32_t count;
  {
    std::lock_guard lock(mutex_);
    shared_.push_back(std::move(runnable));
    UpdateHints();
    count = Grant(helpers);
  }
  Notify(count);
}

void ThreadPool::Withdraw(const Runnable& runnable) {
  std::shared_ptr<Runnable> dropped;  // Its destructor must not run under the lock.
  std::lock_guard lock(mutex_);
  auto found =
      std::find_if(shared_.begin(), shared_.end(), [&](const auto& entry) { return entry.get() == &runnable; });
  if (found == shared_.end()) return;
  dropped = std::move(*found);
  shared_.erase(found);
  UpdateHints();
}

void* ThreadPool::ThreadEntry(void* start) {
  const auto [pool, index] = *static_cast<const ThreadStart*>(start);
  char name[16];  // The kernel's limit, with the terminator.
  std::snprintf(name, sizeof name, "mr-cpu-%u", index % 1000);
  EnterPoolThread(name);
  pool->ThreadMain();
  return nullptr;
}

void ThreadPool::ThreadMain() {
  std::unique_lock lock(mutex_);
  bool has_worked = false;
  while (true) {
    if (std::shared_ptr<Runnable> runnable = Pick()) {
      // Remaining work needs a thread too, since this thread may have taken the wake that was meant for it.
      const uint32_t count = ready_count_ > spinners_ + granted_ ? Grant(1) : 0;
      lock.unlock();
      Notify(count);
      runnable->Run();
      runnable.reset();
      has_worked = true;
      lock.lock();
    } else if (is_closing_) {
      return;
    } else if (!std::exchange(has_worked, false) || !Spin(lock)) {
      ++sleepers_;
      wake_.wait(lock, [this] { return granted_ > 0; });
      // After closing, the tokens stay for all threads.
      if (!is_closing_) --granted_;
    }
  }
}

std::shared_ptr<Runnable> ThreadPool::Pick() {
  if (fuzzer_ && ready_count_ > 0) return PickAny();
  uint32_t level = 0;
  while (level < kLevels && ready_[level].empty()) ++level;
  auto shared = std::min_element(shared_.begin(), shared_.end(),
                                 [](const auto& a, const auto& b) { return a->priority() < b->priority(); });
  // At equal priority a stream goes before a helper: streams must run concurrently, helpers are optional.
  if (shared != shared_.end() && Level((*shared)->priority()) < level) return *shared;
  if (level == kLevels) return nullptr;
  std::shared_ptr<Runnable> runnable = std::move(ready_[level].front());
  ready_[level].pop_front();
  --ready_count_;
  UpdateHints();
  return runnable;
}

// Ignores priorities, which are hints, and arrival order. Streams still go before helpers.
std::shared_ptr<Runnable> ThreadPool::PickAny() {
  uint32_t index = fuzzer_->Below(ready_count_);
  uint32_t level = 0;
  while (index >= ready_[level].size()) index -= static_cast<uint32_t>(ready_[level++].size());
  const auto chosen = ready_[level].begin() + index;
  std::shared_ptr<Runnable> runnable = std::move(*chosen);
  ready_[level].erase(chosen);
  --ready_count_;
  UpdateHints();
  return runnable;
}

void ThreadPool::Push(std::shared_ptr<Runnable> runnable) {
  ready_[Level(runnable->priority())].push_back(std::move(runnable));
  ++ready_count_;
  UpdateHints();
}

uint32_t ThreadPool::Grant(uint32_t wanted) {
  const uint32_t count = std::min(wanted, sleepers_);
  sleepers_ -= count;
  granted_ += count;
  return count;
}

bool ThreadPool::Spin(std::unique_lock<std::mutex>& lock) {
  if (!MaySpin() || spinners_ == kMaxSpinners) return false;
  ++spinners_;
  lock.unlock();
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  while (!has_work_.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < deadline) RelaxCore();
  lock.lock();
  --spinners_;
  return true;
}

void ThreadPool::UpdateHints() {
  uint32_t level = 0;
  while (level < kLevels && ready_[level].empty()) ++level;
  most_urgent_.store(level, std::memory_order_relaxed);
  has_work_.store(level < kLevels || !shared_.empty(), std::memory_order_relaxed);
}

void ThreadPool::Notify(uint32_t count) {
  for (; count > 0; --count) wake_.notify_one();
}

}  // namespace millrace::cpu
