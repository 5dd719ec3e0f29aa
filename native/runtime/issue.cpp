// One record: resolve what it names, park the stream or hand the work to the backend, say what failed.
//
// A record is decided whole before anything changes: it parks untouched, or it is accepted, or it fails and poisons
// what it would have written. A failed record still completes its ticket, in stream order.

#include <algorithm>
#include <utility>

#include "runtime/channel.h"
#include "runtime/registry.h"

namespace millrace {

using protocol::Opcode;

Channel::Outcome Channel::Issue(StreamState& stream, const Record& record) {
  const Ticket ticket = stream.Issued() + 1;
  Outcome outcome = Outcome::kIssued;
  // On a lost device nothing is issued any more: its tickets never complete, and their owners know why.
  if (!loss_.is_lost()) {
    if (std::atomic_ref(stream.slot().fault).load(std::memory_order_acquire) != 0) CollectFaults(stream);
    outcome = IssueKnown(stream, ticket, record);
    if (outcome == Outcome::kIssued) stream.accepted = ticket;
  }
  if (outcome == Outcome::kParked) return outcome;
  stream.park.store(ParkReason::kNone, std::memory_order_relaxed);
  submissions_.Retire();
  stream.MarkIssued(ticket);
  // Nobody looks after a record before it is issued.
  if (device_.needs_polling() && stream.IsWantedOfDevice()) WatchIfPolled(stream);
  if (device_.needs_polling() && !std::exchange(stream.is_dirty, true)) dirty_.push_back(&stream);
  return outcome;
}

Channel::Outcome Channel::IssueKnown(StreamState& stream, Ticket ticket, const Record& record) {
  const Opcode opcode = record.opcode();
  RecordReader reader(record.bytes);
  if (opcode == Opcode::kStreamCreate) return IssueCreate(stream, ticket, reader);
  if (opcode == Opcode::kStreamDestroy) return IssueDestroy(stream, ticket);
  if (ticket > protocol::kStreamWindow && stream.Completed() < ticket - protocol::kStreamWindow &&
      WaitsForEnd(stream, stream, ticket - protocol::kStreamWindow / 2)) {
    return Park(stream, ParkReason::kWindow);
  }
  switch (opcode) {
    case Opcode::kCopyStrided:
      return IssueCopyStrided(stream, ticket, reader);
    case Opcode::kFillStrided:
      return IssueFillStrided(stream, ticket, reader);
    case Opcode::kRecordEvent:
      return IssueRecordEvent(stream, ticket, reader);
    case Opcode::kFreeEvent:
      return IssueFreeEvent(stream, ticket, reader);
    case Opcode::kWaitEvent:
      return IssueWaitEvent(stream, ticket, reader);
    case Opcode::kHold:
      return IssueHold(stream, ticket);
    case Opcode::kAlloc:
      return IssueAlloc(stream, ticket, reader);
    case Opcode::kAdopt:
      return IssueAdopt(stream, ticket, reader);
    case Opcode::kFree:
      return IssueFree(stream, ticket, reader);
    case Opcode::kFill:
      return IssueFill(stream, ticket, reader);
    case Opcode::kCopy:
      return IssueCopy(stream, ticket, reader);
    case Opcode::kLaunch:
      return IssueLaunch(stream, ticket, reader);
    case Opcode::kWait:
      return IssueWait(stream, ticket, reader);
    case Opcode::kNop:
      if (stream.poisoned_by != 0) return FailPoisoned(stream, ticket, {});
      CloseTicket(stream, ticket);
      return Outcome::kIssued;
    default:
      return FailMalformed(stream, ticket);
  }
}

// ── Streams ────────────────────────────────────────────────────────────────────────────────────────────────────────

Channel::Outcome Channel::IssueCreate(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::StreamCreateRecord record;
  if (!reader.Read(record) || stream.backend != nullptr) return FailMalformed(stream, ticket);
  const hal::DeviceInfo& info = device_.device().info();
  if (record.priority > info.least_priority || record.priority < info.greatest_priority) {
    return Fail(stream, ticket, {.status = Status(StatusCode::kArgument, "the stream's priority is out of range")}, {});
  }
  hal::StreamRequest request{.priority = record.priority, .slot = &stream.slot(), .sink = &stream};
  if (record.is_foreign != 0) request.foreign = record.foreign;
  auto created = device_.device().CreateStream(request);
  if (!created.ok()) return Fail(stream, ticket, {.status = created.status()}, {});
  {
    std::lock_guard lock(device_.streams_mutex());
    stream.backend = std::move(created).value();
  }
  stream.SetNativeHandle(stream.backend->NativeHandle());
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueDestroy(StreamState& stream, Ticket ticket) {
  if (WaitsForEnd(stream, stream, ticket - 1)) return Park(stream, ParkReason::kDrain);
  if (FreeLeftBehind(stream)) {
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  {
    std::lock_guard lock(device_.streams_mutex());
    stream.backend.reset();
  }
  stream.Forget();
  stream.poisoned_by = stream.lost_device = 0;
  stream.has_owner_left = false;
  stream.CompleteOnHost(ticket);
  const uint32_t owner_id = stream.owner_id;
  submissions_.FreeSlot(stream);
  OwnedStreamEnded(owner_id);
  SlotFreed();
  return Outcome::kIssued;
}

// ── Waits ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Channel::Outcome Channel::IssueWait(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::WaitRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  const std::shared_ptr<Channel> other =
      record.device == id() ? shared_from_this() : Registry::Instance().Find(record.device);
  StreamState* const target = other == nullptr ? nullptr : other->FindStream(record.target);
  // Asked in this order: a device that closes has run what it was given before it counts as lost, and what faults says
  // so before it is over. That must be known before anything here reads what was written.
  const bool is_lost = other != nullptr && other->LostStatus() != StatusCode::kOk;
  // A device that is closed ran everything that was submitted to it.
  const bool is_over = target == nullptr || target->Completed() >= record.ticket;
  if (target != nullptr && std::atomic_ref(target->slot().fault).load(std::memory_order_acquire) != 0) {
    other->CollectFaults(*target);
  }
  if (is_over) {
    if (const auto failed = FailUnready(stream, ticket, 0, {})) return *failed;
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  if (is_lost) return Poison(stream, ticket, record.device);
  if (target->Issued() < record.ticket && target->AddWaiter(record.ticket, false, shared_from_this(), stream.index())) {
    return ParkFor(stream, *other, ParkReason::kPoint);
  }
  // A stream whose records can only fail has them fail in their order: who waits for it counts on what it waited for.
  const bool can_run = stream.poisoned_by == 0 && stream.backend != nullptr;
  {
    std::lock_guard lock(other->access().streams_mutex());
    if (other->access().IfOpen() == nullptr || target->backend == nullptr) return LookAgain(stream);
    if (can_run && &other->backend() == &device_.backend()) {
      const Status status = stream.backend->Wait(ticket, *target->backend, record.ticket);
      if (status.code() == StatusCode::kUpstream) return Poison(stream, ticket, record.device);
      return status.ok() ? Outcome::kIssued : FailDriver(stream, ticket, status, 0, {});
    }
  }
  // For it the channel waits; so too between devices of two kinds, which know nothing of each other's streams.
  if (!target->AddWaiter(record.ticket, true, shared_from_this(), stream.index())) return LookAgain(stream);
  if (other.get() == this) SignalDirty();  // Or the word that is waited for might never be written.
  other->WatchIfPolled(*target);
  return ParkFor(stream, *other, ParkReason::kPoint);
}

/// What it waits for was over, or lost, just now.
Channel::Outcome Channel::LookAgain(StreamState& stream) {
  WakeStream(stream.index());
  return Park(stream, ParkReason::kPoint);
}

Channel::Outcome Channel::ParkFor(StreamState& stream, const Channel& other, ParkReason reason) {
  // It may have been lost, and have woken all who waited, just before this stream was among them.
  if (other.LostStatus() != StatusCode::kOk) WakeStream(stream.index());
  return Park(stream, reason);
}

Channel::Outcome Channel::Poison(StreamState& stream, Ticket ticket, uint32_t device) {
  if (stream.poisoned_by != 0) return FailPoisoned(stream, ticket, {});
  const Status status(StatusCode::kDeviceLost, "the device that the stream waits for was lost");
  stream.lost_device = device;
  stream.poisoned_by = RecordFailure(stream, ticket, {.status = status, .lost_device = device}, {});
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

Channel::Outcome Channel::FailPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs) {
  RecordPoisoned(stream, ticket, outputs);
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

void Channel::RecordPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs) {
  const Status status(StatusCode::kDeviceLost, "the stream waited for a lost device");
  RecordFailure(stream, ticket, {.status = status, .cause = stream.poisoned_by, .lost_device = stream.lost_device},
                outputs);
}

// ── Outcomes ───────────────────────────────────────────────────────────────────────────────────────────────────────

Status Channel::NoStream() {
  return Status(StatusCode::kState, "the stream could not be created");
}

Channel::Outcome Channel::Park(StreamState& stream, ParkReason reason) {
  const bool is_new = stream.park.exchange(reason, std::memory_order_relaxed) != reason;
  if (is_new && !awaiting_frees_.empty()) LookForMemoryAgain();
  return Outcome::kParked;
}

bool Channel::WaitsForEnd(StreamState& stream, StreamState& of, Ticket ticket) {
  if (of.Completed() >= ticket || !of.AddWaiter(ticket, true, shared_from_this(), stream.index())) return false;
  SignalDirty();  // Or the word that is waited for might never be written.
  WatchIfPolled(of);
  return true;
}

std::optional<Channel::Outcome> Channel::FailUnready(StreamState& stream, Ticket ticket, uint32_t cause,
                                                     const Outputs& outputs) {
  if (stream.poisoned_by != 0) return FailPoisoned(stream, ticket, outputs);
  if (cause != 0) {
    const Status status(StatusCode::kUpstream, "it reads what an earlier failure poisoned");
    return Fail(stream, ticket, {.status = status, .cause = cause}, outputs);
  }
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream()}, outputs);
  return std::nullopt;
}

Channel::Outcome Channel::FailMalformed(StreamState& stream, Ticket ticket) {
  return Fail(stream, ticket, {.status = Status(StatusCode::kInternal, "malformed record")}, {});
}

Channel::Outcome Channel::FailDriver(StreamState& stream, Ticket ticket, Status status, uint32_t kernel,
                                     const Outputs& outputs) {
  if (status.code() != StatusCode::kDeviceLost)
    return Fail(stream, ticket, {.status = status, .kernel = kernel}, outputs);
  loss_.Mark(status);
  return Outcome::kIssued;
}

Channel::Outcome Channel::Fail(StreamState& stream, Ticket ticket, const Failure& failure, const Outputs& outputs) {
  RecordFailure(stream, ticket, failure, outputs);
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

uint32_t Channel::RecordFailure(StreamState& stream, Ticket ticket, Failure failure, const Outputs& outputs) {
  failure.id = NextFailureId();
  failure.first = failure.last = ticket;
  const uint32_t id = stream.failures.Add(failure, stream.slot());
  // Readers learn the first cause, however long the chain.
  outputs.Poison(failure.cause != 0 ? failure.cause : id);
  return id;
}

void Channel::CloseTicket(StreamState& stream, Ticket ticket) {
  if (stream.backend == nullptr) {
    stream.CompleteOnHost(ticket);
    return;
  }
  const Status status = stream.backend->Nop(ticket);
  if (!status.ok()) loss_.Mark(Status(StatusCode::kDeviceLost, status.note(), status.driver_code()));
}

}  // namespace millrace
