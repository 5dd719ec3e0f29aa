#include "runtime/issue/event_records.h"

#include <utility>

#include "runtime/device_access.h"
#include "runtime/issue/record_ends.h"
#include "runtime/resource_tables.h"

namespace millrace {

using protocol::EventKind;

Outcome EventRecords::RecordEvent(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::RecordEventRecord record;
  if (!reader.ReadFields(record) || record.kind > static_cast<uint32_t>(EventKind::kInterprocess)) {
    return Outcome::kMalformed;
  }
  const auto kind = static_cast<EventKind>(record.kind);
  EventRef* found = tables_.events.Find(record.handle);
  // A timing event is recorded only once: otherwise a later read could get either of two timestamps.
  const bool is_used =
      found != nullptr && kind == EventKind::kTiming && ((*found)->stream != nullptr || (*found)->is_of_graph);
  const bool is_other = found == nullptr ? !tables_.events.IsFree(record.handle) : (*found)->kind != kind;
  if (is_used || is_other) return Outcome::kMalformed;
  if (stream.poisoned_by != 0) return ends_.FailPoisoned(stream, ticket, {});
  if (stream.backend == nullptr) return ends_.Fail(stream, ticket, {.status = RecordEnds::NoStream()}, {});
  if (found == nullptr) {
    auto created = tables_.CreateEvent(device_.device(), record.handle, kind);
    if (!created.ok()) return ends_.FailDriver(stream, ticket, created.status(), 0, {});
    found = tables_.events.Find(record.handle);
    tables_.owned.AddEvent(stream.owner_id, record.handle);
  }
  EventEntry& entry = **found;
  const Status status = stream.backend->Record(ticket, *entry.event_handle);
  if (!status.ok()) return ends_.FailDriver(stream, ticket, status, 0, {});
  entry.stream = &stream;
  entry.ticket = ticket;
  return Outcome::kIssued;
}

Outcome EventRecords::FreeEvent(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FreeEventRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  // If the event could not be created or was never recorded, there is nothing to free.
  if (EventRef* found = tables_.events.Find(record.handle)) {
    stream.Keep(ticket, std::move(*found));
    tables_.events.Release(record.handle);
    tables_.owned.RemoveEvent(stream.owner_id, record.handle);
  }
  return ends_.CloseTicket(stream, ticket);
}

Outcome EventRecords::WaitEvent(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::WaitEventRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  EventRef* const found = tables_.events.Find(record.handle);
  if (found != nullptr && (*found)->kind != EventKind::kInterprocess) return Outcome::kMalformed;
  if (found == nullptr || stream.backend == nullptr) {
    if (const auto failed = ends_.FailUnready(stream, ticket, 0, {})) return *failed;
    return ends_.CloseTicket(stream, ticket);
  }
  // The stream fails in stream order, as at other waits.
  const bool is_poisoned = stream.poisoned_by != 0;
  if (is_poisoned) ends_.RecordPoisoned(stream, ticket, {});
  const Status status = stream.backend->WaitEvent(ticket, *(*found)->event_handle);
  if (status.ok()) {
    stream.Keep(ticket, *found);
  } else if (is_poisoned && status.code() != StatusCode::kDeviceLost) {
    ends_.CloseTicket(stream, ticket);
  } else {
    return ends_.FailWait(stream, ticket, status);
  }
  return Outcome::kIssued;
}

}  // namespace millrace
