#include "runtime/remote/host.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "hal/thread.h"
#include "runtime/channel.h"
#include "runtime/remote/flat.h"

namespace millrace::remote {
namespace {

/// The channel's thread looks at other things after so many bytes.
constexpr uint64_t kTurnBytes = 64 * 1024;

template <typename T>
T BodyOf(std::span<const std::byte> body) {
  T value{};
  std::memcpy(&value, body.data(), std::min(sizeof(T), body.size()));
  return value;
}

}  // namespace

Status Host::Serve(const std::shared_ptr<Channel>& channel) {
  kept_ = channel;
  channel_.store(channel.get(), std::memory_order_release);
  Thread thread;
  MR_TRY(thread.Start("mr-calls", [self = shared_from_this()] { self->AnswerCalls(); }));
  thread.Detach();
  return {};
}

Status Host::EndIfHung(std::chrono::milliseconds timeout) {
  // From now on the owner counts, also if this process is stopped before the first look.
  block_.looks.store(1, std::memory_order_relaxed);
  Thread thread;
  MR_TRY(thread.Start("mr-watchdog", [self = shared_from_this(), timeout] { self->Watch(timeout); }));
  thread.Detach();
  return {};
}

void Host::Watch(std::chrono::milliseconds timeout) {
  const auto pause = PauseOf(timeout);
  const auto most = timeout / pause + 1;
  struct Seen {
    uint64_t progress = 0;
    int64_t looks = 0;
  };
  std::vector<Seen> streams;
  Seen queue;
  const auto stands = [most](Seen& seen, bool is_busy, uint64_t progress) {
    seen.looks = is_busy && seen.progress == progress ? seen.looks + 1 : 0;
    seen.progress = progress;
    return seen.looks > most;
  };
  const auto end = [this](uint32_t which) {
    block_.hung.store(which + 1, std::memory_order_release);
    kill(getpid(), SIGKILL);
  };
  while (true) {
    std::this_thread::sleep_for(pause);
    block_.looks.fetch_add(1, std::memory_order_relaxed);
    const uint64_t read = block_.read.load(std::memory_order_relaxed);
    if (stands(queue, block_.written.load(std::memory_order_relaxed) != read, read)) end(kNoStream);
    for (uint32_t n = 0; StreamState* const stream = kept_->FindStream(n); ++n) {
      if (n == streams.size()) streams.emplace_back();
      // No lock: the thread that has it may be what hangs.
      const Ticket completed = stream->Completed();
      if (stands(streams[n], stream->Issued() > completed, completed)) end(n);
    }
  }
}

void Host::Publish() noexcept {
  const Channel* const channel = channel_.load(std::memory_order_acquire);
  if (channel == nullptr) return;
  const SubmissionQueue& submissions = channel->submissions();
  block_.retired_bytes.store(submissions.retired_bytes(), std::memory_order_relaxed);
  block_.retired.store(submissions.retired(), std::memory_order_relaxed);
  const StatusCode lost = channel->LostStatus();
  if (lost == StatusCode::kOk) return;
  block_.lost_driver_code.store(channel->LostDriverCode(), std::memory_order_relaxed);
  block_.lost.store(static_cast<uint32_t>(lost), std::memory_order_release);
}

bool Host::Take() {
  const uint64_t start = read_;
  const uint64_t written = block_.written.load(std::memory_order_acquire);
  while (read_ != written && read_ - start < kTurnBytes) {
    const uint64_t at = read_ % kQueueBytes;
    EntryHead head;
    std::memcpy(&head, block_.queue + at, sizeof(head));
    MR_CHECK(head.bytes >= sizeof(head) && head.bytes <= kQueueBytes - at);
    TakeEntry(head.kind, {block_.queue + at + sizeof(head), head.bytes - sizeof(head)});
    read_ += head.bytes;
    block_.read.store(read_, std::memory_order_release);
  }
  Publish();
  return read_ != start;
}

void Host::TakeEntry(EntryKind kind, std::span<const std::byte> body) {
  Channel* const channel = channel_.load(std::memory_order_acquire);
  const auto point = BodyOf<Point>(body);
  const auto stream = static_cast<uint32_t>(point.stream);
  switch (kind) {
    case EntryKind::kSkip:
      return;
    case EntryKind::kRecord: {
      const uint64_t now = channel->IsRecorded() ? hal::SteadyNow() : 0;
      const Ticket ticket = channel->Forward(body);
      if (now != 0 && ticket != 0) channel->NoteSubmitted(body, ticket, now);
      // The owner counts a ticket that there is not: it is to see that the device is lost.
      if (ticket == 0) Ring();
      return;
    }
    case EntryKind::kArm:
      if (!channel->Arm(stream, point.ticket)) Ring();
      return;
    case EntryKind::kReported:
      channel->Reported(stream, point.ticket);
      return;
    case EntryKind::kReportedOf: {
      const auto bytes = BodyOf<HostBytes>(body);
      channel->ReportedOf(static_cast<uint32_t>(bytes.handle), bytes.offset, bytes.bytes);
      return;
    }
    case EntryKind::kReleaseHold:
      channel->ReleaseHold(stream, point.ticket);
      return;
    case EntryKind::kFailExternal:
      channel->FailExternal(stream, point.ticket);
      return;
  }
}

void Host::Ring() noexcept {
  Publish();
  // The caller stores data, then fences, then exchanges the word; the owner clears it, then looks.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (block_.rung.exchange(1, std::memory_order_acq_rel) == 0) Wake(block_.rung);
}

void Host::AnswerCalls() {
  while (true) {
    const uint32_t state = block_.call_state.load(std::memory_order_acquire);
    if (state != kAsked) {
      SleepWhile(block_.call_state, state);
      continue;
    }
    Answer();
    block_.call_state.store(kAnswered, std::memory_order_release);
    Wake(block_.call_state);
  }
}

template <typename T>
void Host::AnswerWith(std::span<const T> list) {
  block_.call_bytes = list.size_bytes();
  std::memcpy(block_.call_data, list.data(), list.size_bytes());
}

void Host::Answer() {
  Channel* const channel = channel_.load(std::memory_order_acquire);
  auto& words = block_.words;
  const auto first = static_cast<uint32_t>(words[0]);
  switch (block_.call) {
    case CallKind::kReserveStream: {
      const int64_t stream = channel->ReserveStream(shared_from_this());
      words[0] = static_cast<uint64_t>(stream);
      words[1] = stream < 0 ? 0 : channel->LastTicket(static_cast<uint32_t>(stream));
      break;
    }
    case CallKind::kReserveHandles:
      words[0] = channel->ReserveHandles(static_cast<protocol::HandleKind>(first), static_cast<uint32_t>(words[1]));
      break;
    case CallKind::kReserveFailure:
      words[0] = Channel::ReserveFailure();
      break;
    case CallKind::kFailures: {
      const auto count = std::min<uint64_t>(words[2], kCallBytes / sizeof(FlatFailure));
      const FailureLog::Part part =
          channel->Failures(first, static_cast<uint32_t>(words[1]), static_cast<uint32_t>(count));
      std::vector<FlatFailure> flat;
      for (const Failure& failure : part.intervals) flat.push_back(Flat(failure));
      words[0] = part.rest;
      AnswerWith(std::span<const FlatFailure>(flat));
      break;
    }
    case CallKind::kStats: {
      const ChannelStats stats = channel->Stats();
      words[0] = stats.pending_records;
      words[1] = stats.ring_bytes;
      words[2] = stats.live_memory;
      words[3] = stats.live_bytes;
      words[4] = stats.staging_bytes;
      words[5] = stats.pinned_bytes;
      words[6] = stats.streams;
      AnswerWith(std::span<const ParkedStream>(stats.parked));
      break;
    }
    case CallKind::kBusyStreams:
      AnswerWith(std::span<const uint32_t>(channel->BusyStreams()));
      break;
    case CallKind::kDefineGraph: {
      if (words[1] != 0) definition_.clear();
      const auto bytes = std::min<uint64_t>(block_.call_bytes, kCallBytes);
      definition_.insert(definition_.end(), block_.call_data, block_.call_data + bytes);
      if (words[2] != 0) channel->DefineGraph(first, std::exchange(definition_, {}), 0);
      break;
    }
    case CallKind::kHold:
      channel->Hold(words[0] != 0);
      break;
    case CallKind::kStartRecording:
      channel->StartRecording(0, words[0], static_cast<protocol::DeviceTimes>(words[1]));
      break;
    case CallKind::kStopRecording:
      channel->StopRecording(0);
      break;
    case CallKind::kTakeTimes: {
      std::vector<protocol::RecordedTime> times(
          std::min<uint64_t>(words[0], kCallBytes / sizeof(protocol::RecordedTime)));
      const Recorder::Taken taken = channel->TakeTimes(0, times);
      words[0] = taken.count;
      words[1] = taken.dropped;
      AnswerWith(std::span<const protocol::RecordedTime>(times.data(), taken.count));
      break;
    }
  }
}

}  // namespace millrace::remote
