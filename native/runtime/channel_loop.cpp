// The channel's own thread: what it does in a turn, when it sleeps, and how it ends.

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/channel.h"
#include "runtime/spin.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

/// How often a channel asks a device with unfinished work whether it is still alive. No word moves after a fault.
constexpr auto kHealthCheck = std::chrono::milliseconds(5);
/// Deferred records of one stream issued in one go, so that a woken flood does not starve the other streams.
constexpr uint32_t kProceedBatch = 256;

}  // namespace

void Channel::Run() {
  bool is_recent = false;
  while (true) {
    // Looked at first: what an abandoned device still has queued is not issued any more.
    if (is_abandoned_.load(std::memory_order_acquire)) break;
    bool has_worked = DrainNotices();
    has_worked |= DrainRing();
    if (has_worked) {
      is_recent = true;
      continue;
    }
    is_draining_ = stop_when_drained_.load(std::memory_order_acquire);
    if (is_draining_ && IsDrained()) break;
    Idle(std::exchange(is_recent, false));
  }
  Finish();
}

bool Channel::DrainNotices() {
  if (!has_notices_.load(std::memory_order_acquire)) return false;
  std::vector<uint32_t> wakes;
  std::vector<std::function<void()>> changes;
  {
    std::lock_guard lock(notice_mutex_);
    has_notices_.store(false, std::memory_order_relaxed);
    wakes.swap(wakes_);
    changes.swap(changes_);
  }
  for (auto& change : changes) change();
  for (const uint32_t index : wakes) {
    StreamState& stream = *FindStream(index);
    stream.is_notified.store(false);
    Proceed(stream);
  }
  SignalDirty();
  return true;
}

void Channel::RunChanges() {
  std::vector<std::function<void()>> changes;
  {
    std::lock_guard lock(notice_mutex_);
    has_notices_.store(false, std::memory_order_relaxed);
    changes.swap(changes_);
  }
  for (auto& change : changes) change();
}

bool Channel::DrainRing() {
  uint32_t read = 0;
  for (; read < protocol::kTimelineWriteEvery; ++read) {
    const std::span<const std::byte> bytes = ring_.Front();
    // Looked at after the record was found: what was submitted on a held channel is not read.
    if (bytes.empty() || is_held_.load(std::memory_order_acquire)) break;
    const Record record = Record::First(bytes);
    StreamState& stream = *FindStream(record.header.stream);
    if (stream.HasDeferred() || Issue(stream, record) == Outcome::kParked) stream.Defer(record);
    ring_.Advance(record.bytes.size());
    // A change posted before a record was submitted must be seen before that record is read.
    if (has_notices_.load(std::memory_order_acquire)) {
      ++read;
      break;
    }
  }
  if (read > 0) SignalDirty();
  return read > 0;
}

void Channel::Proceed(StreamState& stream) {
  for (uint32_t n = 0; stream.HasDeferred(); ++n) {
    if (n == kProceedBatch) {
      WakeStream(stream.index());
      return;
    }
    const Record record = stream.FirstDeferred();
    if (Issue(stream, record) == Outcome::kParked) return;
    stream.DropDeferred(record);
  }
}

void Channel::TellProgress() {
  for (StreamState* stream : recent_) {
    const Ticket wanted = stream->Wanted();
    if (wanted == 0) continue;
    if (const Ticket completed = stream->Completed(); completed >= wanted) stream->Progress(completed);
  }
}

void Channel::SignalDirty() {
  if (!dirty_.empty()) recent_ = dirty_;
  for (StreamState* stream : dirty_) {
    stream->is_dirty = false;
    if (stream->backend == nullptr) continue;
    const Status status = stream->backend->Signal();
    if (status.code() == StatusCode::kDeviceLost) MarkLost(status);
  }
  dirty_.clear();
}

bool Channel::PollUnfinished() {
  if (!needs_polling_ || LostStatus() != StatusCode::kOk) return false;
  bool is_unfinished = false;
  for (uint32_t n = 0; n < stream_count_.load(); ++n) {
    StreamState& stream = *streams_[n].load();
    if (stream.backend == nullptr) continue;
    if (stream.Completed() < stream.accepted) {
      if (const Status status = stream.backend->Check(); status.code() == StatusCode::kDeviceLost) {
        MarkLost(status);
        return false;
      }
      // It may have had too many words on their way when it was signalled last.
      if (const Status status = stream.backend->Signal(); status.code() == StatusCode::kDeviceLost) MarkLost(status);
    }
    // Told also when there was nothing to ask: the device may have written its word since somebody asked for a wake.
    const Ticket completed = stream.Completed();
    stream.Progress(completed);
    is_unfinished |= completed < stream.accepted;
  }
  return is_unfinished;
}

bool Channel::IsDrained() {
  if (!ring_.Empty()) return false;
  if (LostStatus() != StatusCode::kOk) return true;
  for (uint32_t n = 0; n < stream_count_.load(); ++n) {
    StreamState& stream = *streams_[n].load();
    if (stream.HasDeferred() || WaitsForEnd(stream, stream, stream.accepted)) return false;
  }
  return true;
}

bool Channel::HasWork() {
  if (has_notices_.load(std::memory_order_acquire) || is_abandoned_.load(std::memory_order_acquire)) return true;
  if (!is_held_.load(std::memory_order_acquire) && !ring_.Empty()) return true;
  if (!stop_when_drained_.load(std::memory_order_acquire)) return false;
  // The device may be lost just before IsDrained asks to be woken when its streams end, which they then never do.
  return !is_draining_ || (LostStatus() != StatusCode::kOk && ring_.Empty());
}

void Channel::Idle(bool is_recent) {
  if (is_recent && MaySpin()) {
    for (const auto until = Clock::now() + kSpin; Clock::now() < until;) {
      if (HasWork()) return;
      // A device that writes its words by itself tells nobody; while this thread is awake, it saves waking the watcher.
      if (needs_polling_) TellProgress();
      __builtin_ia32_pause();
    }
  }
  const auto timeout = PollUnfinished() ? std::chrono::nanoseconds(kHealthCheck) : std::chrono::nanoseconds::zero();
  bell_.Sleep([&] { return HasWork(); }, timeout);
}

bool Channel::HasBusyStream() {
  for (uint32_t n = 0; n < stream_count_.load(); ++n) {
    const StreamState& stream = *streams_[n].load();
    hal::Stream* const backend = stream.backend.get();
    if (backend == nullptr || !backend->IsBusy(stream.accepted)) continue;
    // A device that faulted comes to no end.
    if (!backend->Check().ok() || !backend->Resolve(stream.accepted).ok()) return false;
    if (backend->IsBusy(stream.accepted)) return true;
  }
  return false;
}

void Channel::AwaitEnds() {
  constexpr std::chrono::nanoseconds kFirstPause = std::chrono::microseconds(200);
  constexpr std::chrono::nanoseconds kLongestPause = std::chrono::milliseconds(20);
  for (auto pause = kFirstPause; LostStatus() != StatusCode::kDeviceLost; pause = std::min(2 * pause, kLongestPause)) {
    if (is_abandoned_.load(std::memory_order_acquire)) device_->Cancel();
    if (!HasBusyStream()) return;
    // A kernel may run for ever, and the control thread waits for what it asks for.
    RunChanges();
    bell_.Sleep([&] { return has_notices_.load(std::memory_order_acquire); }, pause);
  }
}

void Channel::UnlockAll() {
  std::lock_guard lock(locked_mutex_);
  // Before the bytes can be released, always. A refusal leaves nothing to be done on the way out.
  for (const LockedPages& pages : locked_) static_cast<void>(device_->UnregisterHost(pages.bytes));
  locked_.clear();
}

void Channel::Finish() {
  AwaitEnds();
  MarkLost(Closed());
  pump_.Stop();  // It may be using a stream.
  // Before anything is taken down: these may hold what the pump made, which must not outlive the device.
  RunChanges();
  {
    std::lock_guard lock(access_mutex_);
    is_closed_ = true;
    for (uint32_t n = 0; n < stream_count_.load(); ++n) streams_[n].load()->backend.reset();
  }
  peer_users_.Await();  // None comes any more.
  for (uint32_t n = 0; n < stream_count_.load(); ++n) {
    StreamState& stream = *streams_[n].load();
    CollectFaults(stream);  // Their slots go with the device.
    stream.faults.Clear();
    stream.Forget();
    stream.WakeAll();  // Waiters hold their channels, this one too.
  }
  host_.TakeAll();
  UnlockAll();
  pinned_bytes_.store(0, std::memory_order_relaxed);
  memory_.TakeAll();
  events_table_.Clear();
  kernels_.Clear();
  fault_slots_.Clear();
  // Whoever came too late to be woken when the device was marked lost holds this channel.
  memory_.WakeAll();
  host_.WakeAll();
  peer_routes_.WakeAll();
  {
    std::lock_guard lock(device_mutex_);
    is_shut_ = true;
    modules_.clear();
    device_->Close();
  }
  // Somebody may wait for a change that came after the last turn.
  std::vector<std::function<void()>> late;
  {
    std::lock_guard lock(notice_mutex_);
    is_finished_ = true;
    late.swap(changes_);
  }
  for (auto& change : late) change();
  TellAllLeft();
  std::vector<std::function<void()>> told;
  {
    std::lock_guard lock(exit_mutex_);
    has_exited_ = true;
    told.swap(told_of_exit_);
    exit_.notify_all();
  }
  for (auto& tell : told) tell();
}

}  // namespace millrace
