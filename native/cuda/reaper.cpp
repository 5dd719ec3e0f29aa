#include "cuda/reaper.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"

namespace millrace::cuda {
namespace {

using std::chrono::milliseconds;

/// Interval between checks of the events: initially, and after a while without a completed one.
constexpr milliseconds kShortestPause(1);
constexpr milliseconds kLongestPause(16);
/// Time without a new free before the thread checks whether the device is idle: a loop of frees and allocations reuses
/// its memory, and a process that is finished soon holds none.
constexpr milliseconds kQuiet(50);
/// At most 1 in this many of the device's bytes is kept. An allocation of this process can reuse them, but other
/// processes cannot and may need the rest. Above the limit, everything is returned at once, even if that waits, so that
/// the next wait comes as late as possible.
constexpr uint64_t kKeptPart = 4;

uint64_t OwnBytes(const Memory& memory) {
  return memory.IsOpened() ? 0 : memory.capacity();
}

}  // namespace

Reaper::Reaper(std::shared_ptr<Context> context, uint64_t device_bytes)
    : context_(std::move(context)), most_bytes_(device_bytes / kKeptPart), kept_(context_) {}

Reaper::~Reaper() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.Join();
  if (context_->is_lost() || (entries_.empty() && kept_.all_bytes() == 0)) return;
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  if (!entries_.empty())
    std::ignore = context_->Check(Cuda().cuCtxSynchronize(), "waiting for the last use of device memory");
  for (Entry& entry : entries_) {
    if (entry.event != nullptr)
      std::ignore = context_->Check(Cuda().cuEventDestroy(entry.event), "destroying an event");
    Keep(std::move(entry.memory));
  }
  kept_.GiveBack(0);
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
  Add({event, std::move(memory)});
}

void Reaper::FreeAtEnd(std::unique_ptr<Memory> memory) {
  Add({nullptr, std::move(memory)});
}

void Reaper::Add(Entry entry) {
  const std::lock_guard lock(mutex_);
  waiting_bytes_ += OwnBytes(*entry.memory);
  high_bytes_ = std::max(high_bytes_, waiting_bytes_ + kept_.own_bytes());
  entries_.push_back(std::move(entry));
  if (entries_.back().event == nullptr) return;
  if (!thread_.joinable()) std::ignore = thread_.Start("mr-reaper", [this] { Run(); });
  changed_.notify_one();
}

void Reaper::Keep(std::unique_ptr<Memory> memory) {
  if (memory->IsObject()) {
    if (!context_->is_lost()) std::ignore = memory->Release();
    return;
  }
  const std::lock_guard lock(mutex_);
  waiting_bytes_ -= OwnBytes(*memory);
  kept_.Keep(std::move(memory));
}

uint64_t Reaper::Bytes() {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_ + kept_.own_bytes();
}

uint64_t Reaper::HighBytes() {
  const std::lock_guard lock(mutex_);
  return high_bytes_;
}

void Reaper::ResetHigh() {
  const std::lock_guard lock(mutex_);
  high_bytes_ = waiting_bytes_ + kept_.own_bytes();
}

std::unique_ptr<Memory> Reaper::Reuse(uint64_t bytes) {
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return nullptr;
  Sweep();
  return kept_.Take(bytes);
}

void Reaper::GiveBack(uint64_t keep_bytes) {
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  Sweep();
  kept_.GiveBack(keep_bytes);
}

void Reaper::Run() {
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  milliseconds pause = kShortestPause;
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (AwaitsEvents()) {
      lock.unlock();
      // After a completed event there may be more; otherwise the interval grows.
      pause = Sweep() ? kShortestPause : std::min(2 * pause, kLongestPause);
      GiveBackTooMuch();
      lock.lock();
      if (!is_ending_ && AwaitsEvents()) changed_.wait_for(lock, pause);
      continue;
    }
    pause = kShortestPause;
    if (kept_.all_bytes() == 0 || context_->is_lost()) {
      changed_.wait(lock);
    } else if (changed_.wait_for(lock, kQuiet) == std::cv_status::timeout) {
      lock.unlock();
      kept_.GiveBackWhileIdle();
      GiveBackTooMuch();
      lock.lock();
    }
  }
}

bool Reaper::AwaitsEvents() const {
  return !context_->is_lost() &&
         std::ranges::any_of(entries_, [](const Entry& entry) { return entry.event != nullptr; });
}

void Reaper::GiveBackTooMuch() {
  if (kept_.all_bytes() > most_bytes_) kept_.GiveBackWhileIdle();
  if (kept_.all_bytes() > most_bytes_) kept_.GiveBack(0);
}

bool Reaper::Sweep() {
  const std::lock_guard sweeping(sweep_mutex_);
  std::vector<Entry> entries;
  {
    // The driver is queried without the lock, which a channel takes.
    const std::lock_guard lock(mutex_);
    entries.swap(entries_);
  }
  std::vector<Entry> others;
  bool has_reached = false;
  for (Entry& entry : entries) {
    if (!IsReached(entry)) {
      others.push_back(std::move(entry));
      continue;
    }
    has_reached = true;
    std::ignore = context_->Check(Cuda().cuEventDestroy(entry.event), "destroying an event");
    Keep(std::move(entry.memory));
  }
  const std::lock_guard lock(mutex_);
  entries_.insert(entries_.begin(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  changed_.notify_one();  // The thread may have seen an empty list during the queries.
  return has_reached;
}

bool Reaper::IsReached(const Entry& entry) {
  if (entry.event == nullptr || context_->is_lost()) return false;
  const CUresult code = Cuda().cuEventQuery(entry.event);
  return code != CUDA_ERROR_NOT_READY && context_->Check(code, "querying the last use of device memory").ok();
}

}  // namespace millrace::cuda
