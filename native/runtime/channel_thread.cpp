#include "runtime/channel_thread.h"

#include <algorithm>
#include <optional>
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

ChannelThread::ChannelThread(const ChannelParts& parts, PageLocks& locks)
    : device_(parts.device),
      streams_(parts.streams),
      inbox_(parts.inbox),
      tables_(parts.tables),
      peers_(parts.peers),
      loss_(parts.loss),
      submissions_(parts.submissions),
      faults_(parts.faults),
      owners_(parts.owners),
      blocking_calls_(parts.blocking_calls),
      locks_(locks),
      issuer_(parts) {}

void ChannelThread::Run() {
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

bool ChannelThread::DrainNotices() {
  if (!inbox_.HasNotices()) return false;
  const ThreadInbox::Notices notices = inbox_.TakeAll();
  for (const auto& change : notices.changes) change();
  for (StreamState* const stream : notices.wakes) {
    stream->is_notified.store(false);
    Proceed(*stream);
  }
  issuer_.graphs().EndFreed();
  issuer_.progress().Signal();
  return true;
}

void ChannelThread::RunChanges() {
  for (const auto& change : inbox_.TakeChanges()) change();
}

bool ChannelThread::DrainRing() {
  uint32_t read = 0;
  for (; read < protocol::kTimelineWriteEvery; ++read) {
    const std::optional<Record> record = submissions_.First();
    // Looked at after the record was found: what was submitted on a held channel is not read.
    if (!record || inbox_.IsHeld()) break;
    // A change posted before a record was submitted must be seen before that record is read.
    if (inbox_.HasNotices()) DrainNotices();
    StreamState& stream = streams_.At(record->header.stream);
    if (!stream.deferred.empty() || issuer_.Issue(stream, *record) == Outcome::kParked) stream.deferred.Add(*record);
    submissions_.Advance(*record);
    // Streams to continue come before further records.
    if (inbox_.HasNotices()) {
      ++read;
      break;
    }
  }
  if (read > 0) issuer_.progress().Signal();
  return read > 0;
}

void ChannelThread::Proceed(StreamState& stream) {
  for (uint32_t n = 0; !stream.deferred.empty(); ++n) {
    if (n == kProceedBatch) {
      inbox_.Wake(stream);
      return;
    }
    if (issuer_.Issue(stream, stream.deferred.First()) == Outcome::kParked) return;
    stream.deferred.DropFirst();
  }
}

bool ChannelThread::IsDrained() {
  if (!submissions_.Empty()) return false;
  if (loss_.is_lost()) return true;
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    if (!stream.deferred.empty() || issuer_.waits().WaitsForEnd(stream, stream, stream.accepted)) return false;
  }
  return true;
}

bool ChannelThread::HasWork() {
  if (inbox_.HasNotices() || inbox_.IsAbandoned()) return true;
  if (!inbox_.IsHeld() && !submissions_.Empty()) return true;
  if (!inbox_.IsStopping()) return false;
  // The device may be lost just before IsDrained asks to be woken when its streams end, which they then never do.
  return !is_draining_ || (loss_.is_lost() && submissions_.Empty());
}

void ChannelThread::Idle(bool is_recent) {
  if (is_recent && MaySpin()) {
    for (const auto until = Clock::now() + kSpin; Clock::now() < until;) {
      if (HasWork()) return;
      // A device that writes its words by itself tells nobody; while this thread is awake, it saves waking the watcher.
      issuer_.progress().TellWritten();
      __builtin_ia32_pause();
    }
  }
  const auto timeout =
      issuer_.progress().Poll() ? std::chrono::nanoseconds(kHealthCheck) : std::chrono::nanoseconds::zero();
  inbox_.Sleep([&] { return HasWork(); }, timeout);
}

bool ChannelThread::HasBusyStream() {
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

void ChannelThread::AwaitEnds() {
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

void ChannelThread::Finish() {
  AwaitEnds();
  loss_.Mark(DeviceAccess::Closed());
  blocking_calls_.Stop();  // It may be using a stream.
  // Before anything is taken down: these may hold what the blocking-calls thread made, which must not outlive the
  // device.
  RunChanges();
  {
    std::lock_guard lock(device_.streams_mutex());
    device_.RefuseStreams();
    for (uint32_t n = 0; n < streams_.count(); ++n) streams_.At(n).backend.reset();
  }
  peers_.users.Await();     // None comes any more.
  FaultReports::Collect();  // The slots go with the device.
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    stream.Forget();
    stream.WakeAll();  // Waiters hold their channels, this one too.
  }
  issuer_.graphs().EndAll();
  tables_.host.TakeAll();
  locks_.UnlockAll();
  faults_.Clear();
  tables_.Clear();
  // Streams that began to wait after the device was marked lost keep this channel.
  tables_.WakeAll();
  peers_.routes.WakeAll();
  device_.Close([&] {
    peers_.graphs.EndAll();
    tables_.modules.clear();
  });
  // Somebody may wait for a change that came after the last turn.
  for (const auto& change : inbox_.TakeLastChanges()) change();
  owners_.TellAll();
  std::vector<std::function<void()>> callbacks;
  {
    std::lock_guard lock(exit_mutex_);
    has_exited_ = true;
    callbacks.swap(exit_callbacks_);
    exit_.notify_all();
  }
  for (auto& done : callbacks) done();
}

void ChannelThread::OnExit(std::function<void()> done) {
  {
    std::lock_guard lock(exit_mutex_);
    if (!has_exited_) {
      exit_callbacks_.push_back(std::move(done));
      return;
    }
  }
  done();
}

void ChannelThread::AwaitExit() {
  std::unique_lock lock(exit_mutex_);
  exit_.wait(lock, [&] { return has_exited_; });
}

void ChannelThread::AwaitExit(std::chrono::milliseconds deadline) {
  std::unique_lock lock(exit_mutex_);
  exit_.wait_for(lock, deadline, [&] { return has_exited_; });
}

}  // namespace millrace
