// Marks, which the device stamps with its clock or other processes wait for, and holds, which an owner lets go.

#include <utility>

#include "runtime/channel.h"

namespace millrace {

using protocol::MarkKind;

Channel::Outcome Channel::IssueMark(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::MarkRecord record;
  if (!reader.Read(record) || record.kind > static_cast<uint32_t>(MarkKind::kInterprocess) ||
      HandleGeneration(record.handle) == 0) {
    return FailMalformed(stream, ticket);
  }
  const auto kind = static_cast<MarkKind>(record.kind);
  MarkRef* found = marks_.Find(record.handle);
  // A timestamp that could change would be read before or after it did.
  const bool is_used = found != nullptr && kind == MarkKind::kTiming && (*found)->stream != nullptr;
  if (is_used || (found != nullptr && (*found)->kind != kind)) return FailMalformed(stream, ticket);
  if (stream.doomed_by != 0) return FailDoomed(stream, ticket, {});
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream()}, {});
  if (found == nullptr) {
    auto created = CreateMark(record.handle, kind);
    if (!created.ok()) return FailDriver(stream, ticket, created.status(), 0, {});
    found = marks_.Find(record.handle);
  }
  MarkEntry& entry = **found;
  const Status status = stream.backend->Record(ticket, *entry.mark);
  if (!status.ok()) return FailDriver(stream, ticket, status, 0, {});
  entry.stream = &stream;
  entry.ticket = ticket;
  return Outcome::kIssued;
}

Result<Channel::MarkRef> Channel::CreateMark(uint32_t handle, MarkKind kind) {
  auto created = device_->CreateMark(kind);
  if (!created.ok()) return created.status();
  auto entry = std::make_shared<MarkEntry>();
  entry->mark = std::move(created).value();
  entry->kind = kind;
  return marks_.Bind(handle, std::move(entry));
}

Channel::Outcome Channel::IssueMarkFree(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::MarkFreeRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  // A mark that could not be made, or that nobody recorded, leaves nothing to free.
  if (MarkRef* found = marks_.Find(record.handle)) {
    stream.Keep(ticket, std::move(*found));
    marks_.Release(record.handle);
  }
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueWaitMark(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::WaitMarkRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  MarkRef* const found = marks_.Find(record.handle);
  if (found != nullptr && (*found)->kind != MarkKind::kInterprocess) return FailMalformed(stream, ticket);
  if (found == nullptr || stream.backend == nullptr) {
    if (const auto failed = FailUnready(stream, ticket, 0, {})) return *failed;
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  // The stream fails in its order, as at other waits.
  const bool is_doomed = stream.doomed_by != 0;
  if (is_doomed) RecordDoomed(stream, ticket, {});
  const Status status = stream.backend->WaitMark(ticket, *(*found)->mark);
  if (status.ok()) {
    stream.Keep(ticket, *found);
  } else if (is_doomed && status.code() != StatusCode::kDeviceLost) {
    CloseTicket(stream, ticket);
  } else {
    return FailDriver(stream, ticket, status, 0, {});
  }
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueHold(StreamState& stream, Ticket ticket) {
  if (stream.doomed_by != 0) return FailDoomed(stream, ticket, {});
  if (!stream.TakeRelease(ticket)) return Park(stream, ParkReason::kHold);
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

}  // namespace millrace
