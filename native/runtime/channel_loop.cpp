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
    if (inbox_.IsAbandoned()) break;
    bool has_worked = DrainNotices();
    has_worked |= DrainRing();
    if (has_worked) {
      is_recent = true;
      continue;
    }
    is_draining_ = inbox_.IsStopping();
    if (is_draining_ && IsDrained()) break;
    Idle(std::exchange(is_recent, false));
  }
  Finish();
}

bool Channel::DrainNotices() {
  if (!inbox_.HasNotices()) return false;
  const ThreadInbox::Notices notices = inbox_.TakeAll();
  for (const auto& change : notices.changes) change();
  for (StreamState* const stream : notices.wakes) {
    stream->is_notified.store(false);
    Proceed(*stream);
  }
  SignalDirty();
  return true;
}

void Channel::RunChanges() {
  for (const auto& change : inbox_.TakeChanges()) change();
}

bool Channel::DrainRing() {
  uint32_t read = 0;
  for (; read < protocol::kTimelineWriteEvery; ++read) {
    const std::span<const std::byte> bytes = submissions_.Front();
    // Looked at after the record was found: what was submitted on a held channel is not read.
    if (bytes.empty() || inbox_.IsHeld()) break;
    const Record record = Record::First(bytes);
    StreamState& stream = streams_.At(record.header.stream);
    if (stream.HasDeferred() || Issue(stream, record) == Outcome::kParked) stream.Defer(record);
    submissions_.Advance(record);
    // A change posted before a record was submitted must be seen before that record is read.
    if (inbox_.HasNotices()) {
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
    if (status.code() == StatusCode::kDeviceLost) loss_.Mark(status);
  }
  dirty_.clear();
}

bool Channel::PollUnfinished() {
  if (!device_.needs_polling() || loss_.is_lost()) return false;
  bool is_unfinished = false;
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    if (stream.backend == nullptr) continue;
    if (stream.Completed() < stream.accepted) {
      if (const Status status = stream.backend->Check(); status.code() == StatusCode::kDeviceLost) {
        loss_.Mark(status);
        return false;
      }
      // It may have had too many words on their way when it was signalled last.
      if (const Status status = stream.backend->Signal(); status.code() == StatusCode::kDeviceLost) loss_.Mark(status);
    }
    // Told also when there was nothing to ask: the device may have written its word since somebody asked for a wake.
    const Ticket completed = stream.Completed();
    stream.Progress(completed);
    is_unfinished |= completed < stream.accepted;
  }
  return is_unfinished;
}

bool Channel::IsDrained() {
  if (!submissions_.Empty()) return false;
  if (loss_.is_lost()) return true;
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    if (stream.HasDeferred() || WaitsForEnd(stream, stream, stream.accepted)) return false;
  }
  return true;
}

bool Channel::HasWork() {
  if (inbox_.HasNotices() || inbox_.IsAbandoned()) return true;
  if (!inbox_.IsHeld() && !submissions_.Empty()) return true;
  if (!inbox_.IsStopping()) return false;
  // The device may be lost just before IsDrained asks to be woken when its streams end, which they then never do.
  return !is_draining_ || (loss_.is_lost() && submissions_.Empty());
}

void Channel::Idle(bool is_recent) {
  if (is_recent && MaySpin()) {
    for (const auto until = Clock::now() + kSpin; Clock::now() < until;) {
      if (HasWork()) return;
      // A device that writes its words by itself tells nobody; while this thread is awake, it saves waking the watcher.
      if (device_.needs_polling()) TellProgress();
      __builtin_ia32_pause();
    }
  }
  const auto timeout = PollUnfinished() ? std::chrono::nanoseconds(kHealthCheck) : std::chrono::nanoseconds::zero();
  inbox_.Sleep([&] { return HasWork(); }, timeout);
}

bool Channel::HasBusyStream() {
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    const StreamState& stream = streams_.At(n);
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
  for (auto pause = kFirstPause; loss_.status() != StatusCode::kDeviceLost;
       pause = std::min(2 * pause, kLongestPause)) {
    if (inbox_.IsAbandoned()) device_.device().Cancel();
    if (!HasBusyStream()) return;
    // A kernel may run for ever, and the control thread waits for what it asks for.
    RunChanges();
    inbox_.Sleep([&] { return inbox_.HasNotices(); }, pause);
  }
}

void Channel::Finish() {
  AwaitEnds();
  loss_.Mark(DeviceAccess::Closed());
  pump_.Stop();  // It may be using a stream.
  // Before anything is taken down: these may hold what the pump made, which must not outlive the device.
  RunChanges();
  {
    std::lock_guard lock(device_.streams_mutex());
    device_.RefuseStreams();
    for (uint32_t n = 0; n < streams_.count(); ++n) streams_.At(n).backend.reset();
  }
  peers_.users.Await();  // None comes any more.
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    CollectFaults(stream);  // Their slots go with the device.
    stream.faults.Clear();
    stream.Forget();
    stream.WakeAll();  // Waiters hold their channels, this one too.
  }
  tables_.host.TakeAll();
  locks_.UnlockAll();
  tables_.Clear();
  fault_slots_.Clear();
  // Whoever came too late to be woken when the device was marked lost holds this channel.
  tables_.WakeAll();
  peers_.routes.WakeAll();
  device_.Close([&] { tables_.modules.clear(); });
  // Somebody may wait for a change that came after the last turn.
  for (const auto& change : inbox_.TakeLastChanges()) change();
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
