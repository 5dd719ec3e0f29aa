#include "runtime/issue/stream_records.h"
#include "runtime/fault_reports.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/channel.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/registry.h"

namespace millrace {

// ── Streams ────────────────────────────────────────────────────────────────────────────────────────────────────────

Outcome StreamRecords::Create(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::StreamCreateRecord record;
  if (!reader.ReadFields(record) || stream.backend != nullptr) return Outcome::kMalformed;
  const hal::DeviceInfo& info = device_.device().info();
  if (record.priority > info.least_priority || record.priority < info.greatest_priority) {
    return ends_.Fail(stream, ticket,
                      {.status = Status(StatusCode::kArgument, "the stream's priority is out of range")}, {});
  }
  hal::StreamRequest request{
      .priority = record.priority, .partition = record.partition, .slot = &stream.slot(), .sink = &stream};
  if (record.is_foreign != 0) request.foreign = record.foreign;
  if (const Status status = Make(stream, request); !status.ok()) {
    // A handle of the caller's may be gone at the next record.
    if (!request.foreign) stream.refused = request;
    return ends_.FailDriver(stream, ticket, status, 0, {});
  }
  return ends_.CloseTicket(stream, ticket);
}

Status StreamRecords::CreateRefused(StreamState& stream) {
  Status status = Make(stream, *stream.refused);
  if (status.ok()) stream.refused.reset();
  return status;
}

Status StreamRecords::Make(StreamState& stream, const hal::StreamRequest& request) {
  auto created = device_.device().CreateStream(request);
  MR_TRY(created.status());
  {
    std::lock_guard lock(device_.streams_mutex());
    stream.backend = std::move(created).value();
  }
  stream.SetNativeHandle(stream.backend->NativeHandle());
  return {};
}

Outcome StreamRecords::Destroy(StreamState& stream, Ticket ticket) {
  if (waits_.WaitsForEnd(stream, stream, ticket - 1)) return waits_.Park(stream, ParkReason::kDrain);
  if (owners_.FreeLeftBehind(stream)) return ends_.CloseTicket(stream, ticket);
  faults_.End(stream);
  // The owner may have ended while it waited.
  std::atomic_ref(stream.slot().awaited).store(0, std::memory_order_relaxed);
  {
    std::lock_guard lock(device_.streams_mutex());
    // Nothing asks it afterwards.
    if (stream.backend != nullptr && stream.IsRecorded()) stream.backend->TellTimes();
    stream.backend.reset();
  }
  stream.Forget();
  stream.poisoned_by = stream.lost_device = 0;
  stream.poison = {};
  stream.has_owner_left = false;
  stream.CompleteOnHost(ticket);
  const uint32_t owner_id = stream.owner_id;
  submissions_.FreeSlot(stream);
  owners_.StreamEnded(owner_id);
  return Outcome::kIssued;
}

// ── Waits ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Outcome StreamRecords::Wait(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::WaitRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  const std::shared_ptr<Channel> other =
      record.device == device_.id() ? channel_.shared_from_this() : Registry::Instance().Find(record.device);
  StreamState* const target = other == nullptr ? nullptr : other->FindStream(record.target);
  // Asked in this order: a device that closes has run what it was given before it counts as lost, and what faults says
  // so before it is over. That must be known before anything here reads what was written.
  const bool is_foreign = other.get() != &channel_;
  const bool is_lost = other != nullptr && other->LostStatus() != StatusCode::kOk;
  // A device that is closed ran everything that was submitted to it.
  const bool is_over = target == nullptr || target->Completed() >= record.ticket;
  if (is_foreign && FaultReports::IsAnyReported()) FaultReports::Collect();
  if (is_over) {
    if (const auto failed = ends_.FailUnready(stream, ticket, 0, {})) return *failed;
    return ends_.CloseTicket(stream, ticket);
  }
  if (is_lost) return ends_.Poison(stream, ticket, record.device);
  if (target->Issued() < record.ticket &&
      target->AddWaiter(record.ticket, false, channel_.shared_from_this(), stream.index())) {
    return waits_.ParkFor(stream, *other, ParkReason::kPoint);
  }
  // A stream whose records can only fail has them fail in their order: who waits for it counts on what it waited for.
  const bool can_run = stream.poisoned_by == 0 && stream.backend != nullptr;
  {
    std::lock_guard lock(other->access().streams_mutex());
    if (other->access().IfOpen() == nullptr || target->backend == nullptr) return waits_.LookAgain(stream);
    if (can_run && &other->backend() == &device_.backend()) {
      const Status status = stream.backend->Wait(ticket, *target->backend, record.ticket);
      if (status.code() == StatusCode::kUpstream) return ends_.Poison(stream, ticket, record.device);
      // What follows may derive from what the other device is yet to report.
      if (is_foreign && status.ok()) (void)faults_.Enter(stream, {.ticket = ticket, .is_foreign = true});
      if (status.ok()) return Outcome::kIssued;
      if (status.code() == StatusCode::kDeviceLost) return ends_.FailDriver(stream, ticket, status, 0, {});
    }
  }
  // For it the channel waits; so too where the driver refused the wait, which what follows relies on, and between
  // devices of two kinds, which know nothing of each other's streams.
  if (!target->AddWaiter(record.ticket, true, channel_.shared_from_this(), stream.index()))
    return waits_.LookAgain(stream);
  other->AskIfPolled();
  return waits_.ParkFor(stream, *other, ParkReason::kPoint);
}

Outcome StreamRecords::Hold(StreamState& stream, Ticket ticket) {
  if (stream.poisoned_by != 0) return ends_.FailPoisoned(stream, ticket, {});
  if (!stream.TakeRelease(ticket) && !stream.has_owner_left) return waits_.Park(stream, ParkReason::kHold);
  return ends_.CloseTicket(stream, ticket);
}

Outcome StreamRecords::Nop(StreamState& stream, Ticket ticket) {
  if (stream.poisoned_by != 0) return ends_.FailPoisoned(stream, ticket, {});
  return ends_.CloseTicket(stream, ticket);
}

}  // namespace millrace
