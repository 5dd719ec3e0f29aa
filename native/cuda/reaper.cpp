#include "cuda/reaper.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"

namespace millrace::cuda {

Reaper::~Reaper() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  if (entries_.empty() || context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  std::ignore = context_->Check(Cuda().cuCtxSynchronize(), "waiting for the last use of device memory");
  Release(std::exchange(entries_, {}));
}

void Reaper::FreeAfter(CUstream stream, std::unique_ptr<Memory> memory) {
  CUevent event = nullptr;
  if (!context_->Check(Cuda().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "creating an event").ok()) {
    return FreeAtEnd(std::move(memory));
  }
  if (!context_->Check(Cuda().cuEventRecord(event, stream), "recording an event").ok()) {
    std::ignore = context_->Check(Cuda().cuEventDestroy(event), "destroying an event");
    return FreeAtEnd(std::move(memory));
  }
  const std::lock_guard lock(mutex_);
  entries_.push_back({event, std::move(memory)});
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_one();
}

void Reaper::FreeAtEnd(std::unique_ptr<Memory> memory) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({nullptr, std::move(memory)});
}

void Reaper::Sweep() {
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  const std::lock_guard lock(sweep_mutex_);
  Release(TakeReached());
}

void Reaper::Run() {
  using std::chrono::milliseconds;
  constexpr milliseconds kShortest(1);
  constexpr milliseconds kLongest(16);
  milliseconds pause = kShortest;
  std::unique_lock lock(mutex_);
  const auto is_waited_for = [](const Entry& entry) { return entry.event != nullptr; };
  while (!is_ending_) {
    if (!std::ranges::any_of(entries_, is_waited_for) || context_->is_lost()) {
      changed_.wait(lock);
      pause = kShortest;
      continue;
    }
    const size_t before = entries_.size();
    lock.unlock();
    Sweep();
    lock.lock();
    if (is_ending_) break;
    // Freed something: there may be more. Else it asks ever less often.
    pause = entries_.size() < before ? kShortest : std::min(2 * pause, kLongest);
    if (!entries_.empty()) changed_.wait_for(lock, pause);
  }
}

std::vector<Reaper::Entry> Reaper::TakeReached() {
  std::vector<Entry> reached;
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.event == nullptr || context_->is_lost()) continue;
    const CUresult code = Cuda().cuEventQuery(entry.event);
    if (code == CUDA_ERROR_NOT_READY) continue;
    if (!context_->Check(code, "asking whether memory is used").ok()) continue;
    reached.push_back(std::move(entry));
  }
  std::erase_if(entries_, [](const Entry& entry) { return entry.memory == nullptr; });
  return reached;
}

void Reaper::Release(std::vector<Entry> entries) {
  for (Entry& entry : entries) {
    if (context_->is_lost()) return;
    if (entry.event != nullptr)
      std::ignore = context_->Check(Cuda().cuEventDestroy(entry.event), "destroying an event");
    std::ignore = entry.memory->Release();
  }
}

}  // namespace millrace::cuda
