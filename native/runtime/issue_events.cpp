// Records of driver events (timing and interprocess events), and of holds, which the owner releases.

#include <utility>

#include "runtime/channel.h"

namespace millrace {

using protocol::EventKind;

Channel::Outcome Channel::IssueRecordEvent(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::RecordEventRecord record;
  if (!reader.Read(record) || record.kind > static_cast<uint32_t>(EventKind::kInterprocess) ||
      HandleGeneration(record.handle) == 0) {
    return FailMalformed(stream, ticket);
  }
  const auto kind = static_cast<EventKind>(record.kind);
  EventRef* found = tables_.events.Find(record.handle);
  // A timing event is recorded only once: otherwise a later read could get either of two timestamps.
  const bool is_used = found != nullptr && kind == EventKind::kTiming && (*found)->stream != nullptr;
  if (is_used || (found != nullptr && (*found)->kind != kind)) return FailMalformed(stream, ticket);
  if (stream.poisoned_by != 0) return FailPoisoned(stream, ticket, {});
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream()}, {});
  if (found == nullptr) {
    auto created = tables_.CreateEvent(device_.device(), record.handle, kind);
    if (!created.ok()) return FailDriver(stream, ticket, created.status(), 0, {});
    found = tables_.events.Find(record.handle);
    tables_.owned.AddEvent(stream.owner_id, record.handle);
  }
  EventEntry& entry = **found;
  const Status status = stream.backend->Record(ticket, *entry.event_handle);
  if (!status.ok()) return FailDriver(stream, ticket, status, 0, {});
  entry.stream = &stream;
  entry.ticket = ticket;
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueFreeEvent(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FreeEventRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  // If the event could not be created or was never recorded, there is nothing to free.
  if (EventRef* found = tables_.events.Find(record.handle)) {
    stream.Keep(ticket, std::move(*found));
    tables_.events.Release(record.handle);
    tables_.owned.RemoveEvent(stream.owner_id, record.handle);
  }
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueWaitEvent(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::WaitEventRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  EventRef* const found = tables_.events.Find(record.handle);
  if (found != nullptr && (*found)->kind != EventKind::kInterprocess) return FailMalformed(stream, ticket);
  if (found == nullptr || stream.backend == nullptr) {
    if (const auto failed = FailUnready(stream, ticket, 0, {})) return *failed;
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  // The stream fails in stream order, as at other waits.
  const bool is_poisoned = stream.poisoned_by != 0;
  if (is_poisoned) RecordPoisoned(stream, ticket, {});
  const Status status = stream.backend->WaitEvent(ticket, *(*found)->event_handle);
  if (status.ok()) {
    stream.Keep(ticket, *found);
  } else if (is_poisoned && status.code() != StatusCode::kDeviceLost) {
    CloseTicket(stream, ticket);
  } else {
    return FailDriver(stream, ticket, status, 0, {});
  }
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueHold(StreamState& stream, Ticket ticket) {
  if (stream.poisoned_by != 0) return FailPoisoned(stream, ticket, {});
  if (!stream.TakeRelease(ticket) && !stream.has_owner_left) return Park(stream, ParkReason::kHold);
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

}  // namespace millrace
