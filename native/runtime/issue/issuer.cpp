#include "runtime/issue/issuer.h"

#include "runtime/channel.h"
#include "runtime/issue/malformed_record.h"
#include "runtime/nvtx.h"

namespace millrace {

using protocol::Opcode;

Issuer::Issuer(const ChannelParts& parts)
    : loss_(parts.loss),
      faults_(parts.faults),
      submissions_(parts.submissions),
      progress_(parts),
      waits_(parts),
      ends_(parts),
      frees_(parts, waits_),
      parts_{parts, progress_, waits_, ends_, frees_},
      streams_({parts, progress_, waits_, ends_, frees_}),
      memory_({parts, progress_, waits_, ends_, frees_}),
      copies_({parts, progress_, waits_, ends_, frees_}),
      launches_({parts, progress_, waits_, ends_, frees_}),
      externals_({parts, progress_, waits_, ends_, frees_}),
      events_({parts, progress_, waits_, ends_, frees_}),
      textures_({parts, progress_, waits_, ends_, frees_}),
      graphs_({{parts, progress_, waits_, ends_, frees_}, copies_}) {}

Outcome Issuer::Issue(StreamState& stream, const Record& record) {
  const Ticket ticket = stream.Issued() + 1;
  // On a lost device nothing is issued any more: its tickets never complete, and their owners know why.
  if (!loss_.is_lost()) {
    if (faults_.HasReport()) FaultReports::Collect();
    uint64_t now = 0;
    Outcome outcome;
    if (stream.IsRecorded()) {
      now = hal::SteadyNow();
      const nvtx::Range range(record.header.label, record.opcode());
      outcome = Dispatch(stream, ticket, record);
    } else {
      outcome = Dispatch(stream, ticket, record);
    }
    if (outcome != Outcome::kIssued) {
      if (outcome == Outcome::kParked) {
        if (now != 0) stream.NoteParked(ticket, now);
        return outcome;
      }
      MalformedRecord(parts_, stream, ticket, record).Fail();
    }
    stream.accepted = ticket;
    if (now != 0) stream.Note(protocol::RecordedKind::kIssued, static_cast<uint16_t>(record.opcode()), ticket, now);
  }
  stream.park.store(ParkReason::kNone, std::memory_order_relaxed);
  submissions_.Retire(record.bytes.size());
  stream.MarkIssued(ticket);
  progress_.NoteIssued(stream);
  return Outcome::kIssued;
}

Outcome Issuer::Dispatch(StreamState& stream, Ticket ticket, const Record& record) {
  const Opcode opcode = record.opcode();
  RecordReader reader(record);
  if (opcode == Opcode::kStreamCreate) return streams_.Create(stream, ticket, reader);
  if (opcode == Opcode::kStreamDestroy) return streams_.Destroy(stream, ticket);
  if (ticket > protocol::kStreamWindow && stream.Completed() < ticket - protocol::kStreamWindow &&
      waits_.WaitsForEnd(stream, stream, ticket - protocol::kStreamWindow / 2)) {
    return waits_.Park(stream, ParkReason::kWindow);
  }
  if (stream.backend == nullptr && stream.refused) {
    const Status status = streams_.CreateRefused(stream);
    if (status.code() == StatusCode::kDeviceLost) return ends_.FailDriver(stream, ticket, status, 0, {});
  }
  switch (opcode) {
    case Opcode::kWait:
      return streams_.Wait(stream, ticket, reader);
    case Opcode::kHold:
      return streams_.Hold(stream, ticket);
    case Opcode::kExternal:
      return externals_.External(stream, ticket, reader);
    case Opcode::kNop:
      return streams_.Nop(stream, ticket);
    case Opcode::kAlloc:
      return memory_.Alloc(stream, ticket, reader);
    case Opcode::kAllocArray:
      return memory_.AllocArray(stream, ticket, reader);
    case Opcode::kCreateTexture:
      return textures_.Create(stream, ticket, reader);
    case Opcode::kCopyArray:
      return textures_.Copy(stream, ticket, reader);
    case Opcode::kAdopt:
      return memory_.Adopt(stream, ticket, reader);
    case Opcode::kFree:
      return memory_.Free(stream, ticket, reader);
    case Opcode::kFill:
      return memory_.Fill(stream, ticket, reader);
    case Opcode::kFillStrided:
      return memory_.FillStrided(stream, ticket, reader);
    case Opcode::kCopy:
      return copies_.Copy(stream, ticket, reader);
    case Opcode::kCopyBatch:
      return copies_.CopyBatch(stream, ticket, reader);
    case Opcode::kCopyStrided:
      return copies_.CopyStrided(stream, ticket, reader);
    case Opcode::kLaunch:
      return launches_.Launch(stream, ticket, reader);
    case Opcode::kRecordEvent:
      return events_.RecordEvent(stream, ticket, reader);
    case Opcode::kFreeEvent:
      return events_.FreeEvent(stream, ticket, reader);
    case Opcode::kWaitEvent:
      return events_.WaitEvent(stream, ticket, reader);
    case Opcode::kLaunchGraph:
      return graphs_.Launch(stream, ticket, reader);
    case Opcode::kUploadGraph:
      return graphs_.Upload(stream, ticket, reader);
    case Opcode::kFreeGraph:
      return graphs_.Free(stream, ticket, reader);
    default:
      return Outcome::kMalformed;
  }
}

}  // namespace millrace
