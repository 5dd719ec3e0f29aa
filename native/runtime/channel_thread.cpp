#include "runtime/channel_thread.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "hal/spin.h"
#include "runtime/channel.h"

namespace millrace {
namespace {

using protocol::Schedule;

/// How often a channel asks a device with unfinished work whether it is still alive. No word moves after a fault.
constexpr auto kHealthCheck = std::chrono::milliseconds(5);
/// How long kSpin and kYield stay awake after the last work, and for how long kAuto sleeps in naps: the core of a
/// thread that has slept for longer takes 50 us more to wake it.
constexpr auto kWarm = std::chrono::milliseconds(5);
constexpr std::chrono::nanoseconds kWarmNap = std::chrono::microseconds(50);
constexpr auto kLongestNap = std::chrono::nanoseconds(1'000'000);
/// While somebody waits, the thread sleeps for this fraction of the time waited so far before it looks again: 1/20, but
/// no longer than kLongestShortNap until that is 1/200. A look at a stream takes about 1 us.
constexpr int kNapShare = 20;
constexpr int kLongNapShare = 200;
constexpr auto kLongestShortNap = std::chrono::nanoseconds(50'000);
/// While somebody waits for a device that has to be asked, kAuto naps only when its last work is so long ago: a nap of
/// a few microseconds takes 60 on a virtual machine.
constexpr auto kAwaited = std::chrono::milliseconds(1);
/// How much later than asked a sleep may end. The default, 50 us, would double the short naps.
constexpr unsigned long kTimerSlackNs = 1000;
/// After a timing event, how long a channel waits for more work before it has the device write the progress word. A
/// word between two timing events would add 2 us to the time that they measure.
constexpr auto kBehindEvent = std::chrono::microseconds(3);
/// The same while nobody waits, if the thread would stay awake anyway: each word takes its stream 2 us.
constexpr std::chrono::microseconds kUnawaited(10);
/// Deferred records of one stream issued in one go, so that a woken flood does not starve the other streams.
constexpr uint32_t kProceedBatch = 256;

/// How long the thread stays awake after its last work.
std::chrono::microseconds SpinTime(Schedule schedule) {
  switch (schedule) {
    case Schedule::kAuto:
      return MaySpin() ? kSpin : std::chrono::microseconds::zero();
    case Schedule::kSpin:
    case Schedule::kYield:
      return kWarm;
    case Schedule::kBlocking:
      break;
  }
  return std::chrono::microseconds::zero();
}

/// One of the threads that look instead of sleeping: at most one for four cores, whatever the number of devices.
class Looking {
 public:
  Looking() : may_(count_.fetch_add(1, std::memory_order_relaxed) < kMost) {}
  ~Looking() { count_.fetch_sub(1, std::memory_order_relaxed); }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;
  [[nodiscard]] bool may() const { return may_; }

 private:
  static inline const unsigned kMost = std::thread::hardware_concurrency() / 4;
  static inline std::atomic<unsigned> count_{0};
  const bool may_;
};

/// How long the thread sleeps while somebody waits.
std::chrono::nanoseconds Nap(std::chrono::nanoseconds waited) {
  const auto longest = std::clamp(waited / kLongNapShare, kLongestShortNap, kLongestNap);
  return std::min(waited / kNapShare + std::chrono::microseconds(1), longest);
}

}  // namespace

ChannelThread::ChannelThread(const ChannelParts& parts, PageLocks& locks, Schedule schedule,
                             remote::RecordSource* source)
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
      schedule_(schedule),
      source_(source),
      issuer_(parts) {
  if (source_ != nullptr) inbox_.ShareBell(source_->sleeping());
}

void ChannelThread::Run() {
  std::ignore = prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
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
    if (source_ != nullptr && source_->Take()) continue;
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
  issuer_.progress().Query([this] { return !submissions_.Empty(); });
  return true;
}

void ChannelThread::RunChanges() {
  for (const auto& change : inbox_.TakeChanges()) change();
}

bool ChannelThread::DrainRing() {
  uint32_t read = 0;
  bool is_event_last = false;
  for (; unsignalled_ + read < protocol::kTimelineWriteEvery; ++read) {
    const std::optional<Record> record = submissions_.First();
    // Looked at after the record was found: what was submitted on a held channel is not read.
    if (!record || inbox_.IsHeld()) break;
    // A change posted before a record was submitted must be seen before that record is read.
    if (inbox_.HasNotices()) DrainNotices();
    StreamState& stream = streams_.At(record->header.stream);
    is_event_last = record->header.opcode == static_cast<uint32_t>(protocol::Opcode::kRecordEvent);
    if (!stream.deferred.empty() || issuer_.Issue(stream, *record) == Outcome::kParked) stream.deferred.Add(*record);
    submissions_.Advance(*record);
    // Streams to continue come before further records.
    if (inbox_.HasNotices()) {
      ++read;
      break;
    }
  }
  unsignalled_ += read;
  // The next turn has the words written. Run takes what the source has before that.
  if (read == 0 && source_ != nullptr && source_->HasAny()) return false;
  if (read > 0 && unsignalled_ < protocol::kTimelineWriteEvery && IsGivenRecordSoon(is_event_last)) return true;
  const uint32_t signalled = std::exchange(unsignalled_, 0);
  if (signalled > 0) issuer_.progress().Signal();
  // In a flood of records the thread does not come to Idle for long.
  if (signalled >= protocol::kTimelineWriteEvery) issuer_.progress().Query([] { return false; });
  return read > 0;
}

bool ChannelThread::IsGivenRecordSoon(bool is_event_last) {
  if (!device_.needs_polling()) return false;
  const auto least = is_event_last ? kBehindEvent : std::chrono::microseconds::zero();
  const auto most = std::min(SpinTime(schedule_), kUnawaited);
  for (const auto since = Clock::now(); HasReadAll(); RelaxCore()) {
    const auto waited = Clock::now() - since;
    if (waited >= least && (waited >= most || inbox_.HasNotices() || issuer_.progress().IsAwaited())) return false;
  }
  return true;
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

bool ChannelThread::HasReadAll() {
  return submissions_.Empty() && (source_ == nullptr || !source_->HasAny());
}

bool ChannelThread::IsDrained() {
  if (!HasReadAll()) return false;
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
  if (source_ != nullptr && source_->HasAny()) return true;
  if (!inbox_.IsStopping()) return false;
  // The device may be lost just before IsDrained asks to be woken when its streams end, which they then never do.
  return !is_draining_ || (loss_.is_lost() && submissions_.Empty());
}

void ChannelThread::Idle(bool is_recent) {
  DeviceProgress& progress = issuer_.progress();
  if (is_recent) {
    next_check_ = Clock::now() + kHealthCheck;
    if (Spin()) return;
    idle_since_ = Clock::now();
    next_check_ = idle_since_;
  }
  inbox_.BeginListening();
  bool is_awaited = progress.ServeWaiters();
  auto now = Clock::now();
  CheckIfDue(now);
  if (schedule_ == Schedule::kAuto && device_.needs_polling() && MaySpin()) {
    for (const Looking looking; looking.may() && is_awaited && now - idle_since_ < kAwaited && !HasWork();) {
      RelaxCore();
      is_awaited = progress.ServeWaiters();
      now = Clock::now();
    }
  }
  // A CPU device notifies, and with few cores its kernels need the one that a nap would keep awake.
  const bool may_nap = schedule_ == Schedule::kAuto && (device_.needs_polling() || MaySpin());
  auto timeout = std::chrono::nanoseconds::zero();  // No limit.
  if (is_awaited) {
    timeout = Nap(now - idle_since_);
  } else if (may_nap && now - idle_since_ < kWarm) {
    timeout = kWarmNap;
  } else if (next_check_ != Clock::time_point::max()) {
    timeout = kHealthCheck;
  }
  inbox_.Sleep([&] { return HasWork() || inbox_.IsAsked(); }, timeout);
}

bool ChannelThread::Spin() {
  const auto spin = SpinTime(schedule_);
  const auto has_work = [this] { return HasWork(); };
  for (auto since = Clock::now(), now = since; now - since < spin; now = Clock::now()) {
    if (HasWork()) return true;
    if (issuer_.progress().Query(has_work) && schedule_ != Schedule::kAuto) since = now;
    CheckIfDue(now);
    if (schedule_ == Schedule::kYield) {
      std::this_thread::yield();
    } else {
      RelaxCore();
    }
  }
  return false;
}

void ChannelThread::CheckIfDue(Clock::time_point now) {
  if (now < next_check_) return;
  next_check_ = issuer_.progress().Check() ? now + kHealthCheck : Clock::time_point::max();
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
