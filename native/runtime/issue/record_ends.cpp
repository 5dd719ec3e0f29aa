#include "runtime/issue/record_ends.h"

#include "runtime/device_loss.h"
#include "runtime/fault_reports.h"

namespace millrace {

Outcome RecordEnds::CloseTicket(StreamState& stream, Ticket ticket) {
  if (stream.backend == nullptr) {
    stream.CompleteOnHost(ticket);
    return Outcome::kIssued;
  }
  Status status = stream.backend->Nop(ticket);
  // Without the end of this ticket its stream has none, so a refusal that may pass is asked again.
  if (!status.ok() && status.code() != StatusCode::kDeviceLost) status = stream.backend->Nop(ticket);
  if (!status.ok()) loss_.Mark(Status(StatusCode::kDeviceLost, status.note(), status.driver_code()));
  return Outcome::kIssued;
}

Outcome RecordEnds::Fail(StreamState& stream, Ticket ticket, const Failure& failure, const Outputs& outputs) {
  RecordFailure(stream, ticket, failure, outputs);
  return CloseTicket(stream, ticket);
}

Outcome RecordEnds::FailDriver(StreamState& stream, Ticket ticket, Status status, uint32_t kernel,
                               const Outputs& outputs) {
  if (status.code() != StatusCode::kDeviceLost)
    return Fail(stream, ticket, {.status = status, .kernel = kernel}, outputs);
  loss_.Mark(status);
  return Outcome::kIssued;
}

Outcome RecordEnds::EndUnready(StreamState& stream, Ticket ticket, FailureId cause, const Outputs& outputs) {
  if (stream.poisoned_by != 0) return FailPoisoned(stream, ticket, outputs);
  if (cause != 0) return FailUpstream(stream, ticket, cause, outputs);
  return Fail(stream, ticket, {.status = NoStream()}, outputs);
}

Outcome RecordEnds::FailUpstream(StreamState& stream, Ticket ticket, FailureId cause, const Outputs& outputs) {
  return Fail(stream, ticket, {.status = FaultReports::Upstream(), .cause = cause}, outputs);
}

Outcome RecordEnds::FailPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs) {
  RecordPoisoned(stream, ticket, outputs);
  return CloseTicket(stream, ticket);
}

Outcome RecordEnds::FailGone(StreamState& stream, Ticket ticket, const Outputs& outputs, uint32_t device) {
  return Fail(stream, ticket, {.status = FaultReports::Gone(), .lost_device = device}, outputs);
}

Outcome RecordEnds::Poison(StreamState& stream, Ticket ticket, uint32_t device) {
  if (stream.poisoned_by != 0) return FailPoisoned(stream, ticket, {});
  const Status status(StatusCode::kDeviceLost, "the device that the stream waits for was lost");
  stream.lost_device = device;
  stream.poison = Status(StatusCode::kDeviceLost, "the stream waited for a lost device");
  stream.poisoned_by = RecordFailure(stream, ticket, {.status = status, .lost_device = device}, {});
  return CloseTicket(stream, ticket);
}

Outcome RecordEnds::FailWait(StreamState& stream, Ticket ticket, Status status) {
  if (status.code() == StatusCode::kDeviceLost) return FailDriver(stream, ticket, status, 0, {});
  stream.poison = Status(StatusCode::kUpstream, "the stream could not be made to wait");
  stream.poisoned_by = RecordFailure(stream, ticket, {.status = status}, {});
  return CloseTicket(stream, ticket);
}

FailureId RecordEnds::RecordFailure(StreamState& stream, Ticket ticket, Failure failure, const Outputs& outputs) {
  failure.id = NextFailureId();
  failure.first = failure.last = ticket;
  const FailureId id = stream.failures.Add(failure, stream.slot());
  // Readers learn the first cause, however long the chain.
  const FailureId cause = failure.cause != 0 ? failure.cause : id;
  for (const auto& [entry, use] : outputs.memory) {
    // What was to be overwritten whole has nothing to do with earlier failures any more.
    if (IsUsed(use, Use::kOverwrite)) {
      entry->poison.Set(cause);
    } else if (IsUsed(use, Use::kWrite)) {
      entry->poison.Add(cause);
    }
  }
  for (const HostUse& use : outputs.host) {
    if (use.is_write) faults_.PoisonHost(stream, ticket, use.range, cause);
  }
  return id;
}

void RecordEnds::RecordPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs) {
  RecordFailure(stream, ticket,
                {.status = stream.poison, .cause = stream.poisoned_by, .lost_device = stream.lost_device}, outputs);
}

Status RecordEnds::NoStream() {
  return Status(StatusCode::kState, "the stream could not be created");
}

}  // namespace millrace
