#include "runtime/blocking_calls_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "hal/thread.h"

namespace millrace {

struct BlockingCallsThread::State {
  std::atomic<bool> is_stopping{false};
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::deque<std::function<void()>> works;
  bool has_thread = false;
  bool is_busy = false;
};

BlockingCallsThread::BlockingCallsThread() : state_(std::make_shared<State>()) {}

Status BlockingCallsThread::Do(std::function<void()> work) {
  std::lock_guard lock(state_->mutex);
  if (!state_->has_thread) {
    Thread thread;
    MR_TRY(thread.Start("mr-blocking", [state = state_] { Run(*state); }));
    thread.Detach();
    state_->has_thread = true;
  }
  state_->works.push_back(std::move(work));
  state_->changed.notify_all();
  return {};
}

void BlockingCallsThread::Stop() {
  state_->is_stopping.store(true);
  std::unique_lock lock(state_->mutex);
  state_->works.clear();
  state_->changed.notify_all();
  state_->changed.wait(lock, [&] { return !state_->is_busy; });
}

bool BlockingCallsThread::IsStopping() const {
  return state_->is_stopping.load(std::memory_order_relaxed);
}

void BlockingCallsThread::Run(State& state) {
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(lock, [&] { return !state.works.empty() || state.is_stopping.load(); });
    if (state.is_stopping.load()) return;
    std::function<void()> work = std::move(state.works.front());
    state.works.pop_front();
    state.is_busy = true;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    state.is_busy = false;
    state.changed.notify_all();
  }
}

}  // namespace millrace
