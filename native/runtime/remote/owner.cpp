#include "runtime/remote/owner.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "hal/spin.h"
#include "hal/thread.h"
#include "runtime/remote/flat.h"

namespace millrace::remote {
namespace {

using std::chrono::steady_clock;

/// The other process is taken for one that has ended when it has not read the queue, or answered a call, for so long.
constexpr auto kPatience = std::chrono::seconds(10);
/// How often a wait looks whether the process has ended.
constexpr auto kLook = std::chrono::milliseconds(5);
/// An answer usually comes within this time.
constexpr auto kSpin = std::chrono::microseconds(20);
constexpr auto kRoomPause = std::chrono::microseconds(50);
/// A shorter stand is taken for a busy core.
constexpr auto kShortestStill = std::chrono::milliseconds(1000);

/// By a signal or a debugger. One that writes a core stands still, too, and ends with the signal that tells why.
bool IsStopped(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  return stat[name_end + 2] == 'T' || stat[name_end + 2] == 't';
}

/// Texts of failures, which live as long as the process: there are as many as literals in this library.
const char* Kept(const char* text) {
  static std::mutex mutex;
  static auto* const known = new std::set<std::string>;
  std::lock_guard lock(mutex);
  constexpr size_t kMost = 4096;
  if (known->size() >= kMost) return "";
  return known->emplace(text).first->c_str();
}

}  // namespace

Owner::Owner(SharedBlock& block, std::span<protocol::TimelineSlot> timeline, std::shared_ptr<const void> memory,
             uint32_t max_pending)
    : block_(block),
      timeline_(timeline),
      memory_(std::move(memory)),
      max_pending_(max_pending),
      streams_(timeline.size()) {}

Status Owner::Watch(const std::shared_ptr<Owner>& owner, std::shared_ptr<WakeTarget> target,
                    std::chrono::milliseconds timeout) {
  Thread thread;
  MR_TRY(thread.Start("mr-watch", [owner, target = std::move(target), timeout] {
    std::atomic<uint32_t>& rung = owner->block_.rung;
    const auto pause = PauseOf(timeout);
    const int64_t most = std::max(timeout, kShortestStill) / pause;
    const std::chrono::nanoseconds limit = timeout.count() == 0 ? std::chrono::nanoseconds::zero() : pause;
    uint32_t seen = 0;
    int64_t still = 0;
    while (!owner->is_stopped_.load(std::memory_order_acquire)) {
      if (rung.exchange(0, std::memory_order_seq_cst) != 0) {
        target->Ring();
        continue;
      }
      SleepWhile(rung, 0, limit);
      // A process that rings does not stand still, and this pause was no whole one.
      if (rung.load(std::memory_order_relaxed) != 0) {
        still = 0;
        continue;
      }
      const uint32_t looks = owner->block_.looks.load(std::memory_order_relaxed);
      still = looks != 0 && looks == seen ? still + 1 : 0;
      seen = looks;
      if (still <= most || !IsStopped(owner->process_)) continue;
      if (owner->HasEnded() || owner->is_silent_.exchange(true, std::memory_order_relaxed)) continue;
      // As its own watchdog would have done. A device that is being closed waits for this end.
      owner->block_.hung.store(kNoStream + 1, std::memory_order_release);
      kill(owner->process_, SIGKILL);
      target->Ring();
    }
  }));
  thread.Detach();
  return {};
}

void Owner::Stop() {
  is_stopped_.store(true, std::memory_order_release);
  block_.rung.store(1, std::memory_order_seq_cst);
  Wake(block_.rung);
}

void Owner::ReapLater() const {
  if (process_ == 0) return;
  Thread thread;
  const Status started = thread.Start("mr-reap", [process = process_] {
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
  });
  if (started.ok()) thread.Detach();
}

bool Owner::HasEnded() const {
  if (process_ == 0) return false;
  siginfo_t info{};
  // Leaves the status for Node, which waits for the child itself.
  const int found = waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
  return found == 0 ? info.si_pid == process_ : errno == ECHILD;
}

std::optional<Owner::End> Owner::Ended() const {
  siginfo_t info{};
  const bool is_found = waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (!is_found || info.si_pid != process_) return std::nullopt;
  return info.si_code == CLD_EXITED ? End{info.si_status, 0} : End{0, info.si_status};
}

Submission Owner::Submit(std::span<const std::byte> bytes) {
  const std::optional<Record> record = Record::Check(bytes);
  if (!record) return {0, StatusCode::kInternal};
  if (const StatusCode lost = LostStatus(); lost != StatusCode::kOk) return {0, lost};
  Stream& stream = streams_[record->header.stream];
  if (!stream.is_open) return {0, StatusCode::kState};
  if (IsFull()) return {0, StatusCode::kLimit};
  if (!Write(EntryKind::kRecord, bytes)) return {0, StatusCode::kState};
  ++submitted_;
  submitted_bytes_ += bytes.size();
  if (record->opcode() == protocol::Opcode::kStreamDestroy) stream.is_open = false;
  RingIfSleeping(block_.sleeping);
  return {++stream.last, StatusCode::kOk};
}

bool Owner::IsFull() {
  const auto is_full = [this] {
    return submitted_ - known_retired_ >= max_pending_ ||
           submitted_bytes_ - known_retired_bytes_ >= protocol::kMaxPendingBytes;
  };
  if (!is_full()) return false;
  known_retired_ = block_.retired.load(std::memory_order_relaxed);
  known_retired_bytes_ = block_.retired_bytes.load(std::memory_order_relaxed);
  return is_full();
}

bool Owner::Write(EntryKind kind, std::span<const std::byte> body) {
  const uint64_t bytes = (sizeof(EntryHead) + body.size() + 7) / 8 * 8;
  const uint64_t rest = kQueueBytes - written_ % kQueueBytes;
  if (!AwaitRoom(bytes <= rest ? bytes : rest + bytes)) return false;
  if (bytes > rest) {
    const EntryHead skip{static_cast<uint32_t>(rest), EntryKind::kSkip};
    std::memcpy(block_.queue + written_ % kQueueBytes, &skip, sizeof(skip));
    written_ += rest;
  }
  std::byte* const place = block_.queue + written_ % kQueueBytes;
  const EntryHead head{static_cast<uint32_t>(bytes), kind};
  std::memcpy(place, &head, sizeof(head));
  std::memcpy(place + sizeof(head), body.data(), body.size());
  written_ += bytes;
  block_.written.store(written_, std::memory_order_release);
  return true;
}

bool Owner::AwaitRoom(uint64_t bytes) {
  // A number that the other process cannot have read so far leaves no room.
  const auto has_room = [&] { return written_ - known_read_ + bytes <= kQueueBytes && known_read_ <= written_; };
  if (has_room()) return true;
  for (const auto until = steady_clock::now() + kPatience; steady_clock::now() < until;) {
    known_read_ = block_.read.load(std::memory_order_acquire);
    if (has_room()) return true;
    if (is_silent_ || HasEnded()) break;
    RingIfSleeping(block_.sleeping);
    std::this_thread::sleep_for(kRoomPause);
  }
  is_silent_ = true;
  return false;
}

bool Owner::Call(CallKind kind, std::span<uint64_t> words, uint64_t bytes) {
  // After a call without an answer there is none to any other.
  if (HasEnded()) is_silent_ = true;
  if (is_silent_) return false;
  std::copy(words.begin(), words.end(), block_.words);
  block_.call = kind;
  block_.call_bytes = bytes;
  block_.call_state.store(kAsked, std::memory_order_release);
  Wake(block_.call_state);
  if (!HasAnswer()) {
    is_silent_ = true;
    return false;
  }
  std::copy_n(block_.words, words.size(), words.begin());
  return true;
}

bool Owner::HasAnswer() {
  const auto is_there = [this] { return block_.call_state.load(std::memory_order_acquire) == kAnswered; };
  const auto start = steady_clock::now();
  while (!is_there() && MaySpin() && steady_clock::now() - start < kSpin) RelaxCore();
  while (!is_there()) {
    SleepWhile(block_.call_state, kAsked, kLook);
    if (!is_there() && (is_silent_ || HasEnded() || steady_clock::now() - start > kPatience)) return false;
  }
  return true;
}

template <typename T>
std::vector<T> Owner::Answered(size_t most) const {
  const size_t bytes = std::min<uint64_t>(block_.call_bytes, kCallBytes);
  std::vector<T> list(std::min(most, bytes / sizeof(T)));
  std::memcpy(static_cast<void*>(list.data()), block_.call_data, list.size() * sizeof(T));
  return list;
}

int64_t Owner::ReserveStream() {
  uint64_t words[2] = {};
  if (!Call(CallKind::kReserveStream, words) || words[0] >= streams_.size()) return -1;
  Stream& stream = streams_[words[0]];
  stream.is_open = true;
  // What it was told last counts, whatever the other process says.
  stream.last = std::max(stream.last, words[1]);
  return static_cast<int64_t>(words[0]);
}

uint32_t Owner::ReserveHandles(protocol::HandleKind kind, uint32_t count) {
  uint64_t words[2] = {static_cast<uint64_t>(kind), count};
  constexpr uint64_t kNone = 1u << protocol::kHandleIndexBits;
  return static_cast<uint32_t>(Call(CallKind::kReserveHandles, words) ? std::min(words[0], kNone) : kNone);
}

FailureId Owner::ReserveFailure() {
  uint64_t words[1] = {};
  return Call(CallKind::kReserveFailure, words) ? words[0] : 0;
}

Ticket Owner::LastTicket(uint32_t stream) const {
  return stream < streams_.size() ? streams_[stream].last : 0;
}

Ticket Owner::Completed(uint32_t stream) const {
  protocol::TimelineSlot& slot = timeline_[stream];
  return std::max(std::atomic_ref(slot.device_word).load(std::memory_order_acquire),
                  std::atomic_ref(slot.host_word).load(std::memory_order_acquire));
}

std::vector<SubmissionQueue::Point> Owner::PendingPoints() const {
  std::vector<SubmissionQueue::Point> points;
  for (uint32_t n = 0; n < streams_.size(); ++n) {
    if (streams_[n].last != 0 && Completed(n) < streams_[n].last) points.push_back({n, streams_[n].last});
  }
  return points;
}

bool Owner::Arm(uint32_t stream, Ticket ticket) {
  if (stream >= streams_.size() || Completed(stream) >= ticket || LostStatus() != StatusCode::kOk) return false;
  Send(EntryKind::kArm, Point{stream, ticket});
  return true;
}

FailureLog::Part Owner::Failures(uint32_t stream, uint32_t from, uint32_t count) {
  uint64_t words[3] = {stream, from, count};
  if (!Call(CallKind::kFailures, words)) return {};
  FailureLog::Part part;
  part.rest = words[0];
  for (FlatFailure& flat : Answered<FlatFailure>(count)) {
    flat.note[sizeof(flat.note) - 1] = '\0';
    part.intervals.push_back(Unflat(flat, Kept(flat.note)));
  }
  return part;
}

std::optional<ChannelStats> Owner::Stats() {
  uint64_t words[7] = {};
  if (!Call(CallKind::kStats, words)) return std::nullopt;
  ChannelStats stats;
  stats.pending_records = submitted_ - std::min(submitted_, block_.retired.load(std::memory_order_relaxed));
  stats.ring_bytes = words[1];
  stats.live_memory = words[2];
  stats.live_bytes = words[3];
  stats.staging_bytes = words[4];
  stats.pinned_bytes = words[5];
  stats.streams = static_cast<uint32_t>(words[6]);
  stats.parked = Answered<ParkedStream>(streams_.size());
  return stats;
}

std::vector<uint32_t> Owner::BusyStreams() {
  uint64_t words[1] = {};
  if (!Call(CallKind::kBusyStreams, words)) return {};
  return Answered<uint32_t>(streams_.size());
}

void Owner::DefineGraph(uint32_t handle, std::span<const std::byte> definition) {
  bool is_first = true;
  do {
    const size_t bytes = std::min(definition.size(), kCallBytes);
    std::memcpy(block_.call_data, definition.data(), bytes);
    definition = definition.subspan(bytes);
    uint64_t words[3] = {handle, is_first, definition.empty()};
    if (!Call(CallKind::kDefineGraph, words, bytes)) return;
    is_first = false;
  } while (!definition.empty());
}

void Owner::Hold(bool on) {
  uint64_t words[1] = {on};
  static_cast<void>(Call(CallKind::kHold, words));
}

void Owner::StartRecording(size_t most, protocol::DeviceTimes times) {
  uint64_t words[2] = {most, static_cast<uint64_t>(times)};
  static_cast<void>(Call(CallKind::kStartRecording, words));
}

void Owner::StopRecording() {
  uint64_t words[1] = {};
  static_cast<void>(Call(CallKind::kStopRecording, words));
}

Recorder::Taken Owner::TakeTimes(std::span<protocol::RecordedTime> into) {
  uint64_t words[2] = {into.size()};
  if (!Call(CallKind::kTakeTimes, words)) return {};
  const auto times = Answered<protocol::RecordedTime>(into.size());
  std::copy(times.begin(), times.end(), into.begin());
  return {std::min<size_t>(times.size(), words[0]), words[1]};
}

}  // namespace millrace::remote
