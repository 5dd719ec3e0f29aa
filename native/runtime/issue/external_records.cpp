#include "runtime/issue/external_records.h"

#include <optional>

#include "runtime/channel.h"
#include "runtime/issue/outputs.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/launches.h"

namespace millrace {

Outcome ExternalRecords::External(StreamState& stream, Ticket ticket, RecordReader& reader) {
  // Without an owner nobody calls the function, or says that it has ended.
  const std::optional<bool> release = stream.has_owner_left ? std::optional(true) : stream.ReleaseOf(ticket);
  const bool is_called = stream.Called() == ticket;
  if (is_called && !release) return waits_.Park(stream, ParkReason::kHold);
  // Work of a device that needs no polling runs on the host, where the function may access the memory itself.
  const bool runs_on_host = !device_.needs_polling();
  if (!is_called && !release && runs_on_host) {
    if (waits_.WaitsForEnd(stream, stream, ticket - 1)) return waits_.Park(stream, ParkReason::kPoint);
    if (FaultReports::IsAnyReported()) FaultReports::Collect();
  }
  InFlight& noted = faults_.Next(stream);
  FailureId cause = 0;
  if (const auto ended = ReadUses(stream, reader, noted, cause)) return *ended;
  const Outputs outputs{.memory = noted.memory()};
  if (const auto failed = ends_.FailUnready(stream, ticket, cause, outputs)) return *failed;
  if (!release) {
    stream.CallOwner(ticket);
    return waits_.Park(stream, ParkReason::kHold);
  }
  if (*release) return ends_.Fail(stream, ticket, {.status = {StatusCode::kFunction, "its function failed"}}, outputs);
  noted.ticket = ticket;
  noted.kernel = 0;
  noted.slot = nullptr;
  noted.may_fail = false;
  cause = faults_.Enter(stream, noted);
  if (cause != 0) return ends_.FailUpstream(stream, ticket, cause, outputs);
  // The ticket completes after the work that the function submitted to the driver's stream.
  return ends_.CloseTicket(stream, ticket);
}

std::optional<Outcome> ExternalRecords::ReadUses(StreamState& stream, RecordReader& reader, InFlight& noted,
                                                 FailureId& cause) {
  protocol::ExternalRecord record;
  if (!reader.ReadFields(record) || record.arg_count > protocol::kMaxLaunchArgs) return Outcome::kMalformed;
  MemoryUse* next_use = noted.Room(record.arg_count);
  for (uint32_t n = 0; n < record.arg_count; ++n) {
    protocol::LaunchArg arg;
    if (!reader.Read(arg) || static_cast<protocol::ArgKind>(arg.kind) != protocol::ArgKind::kMemory)
      return Outcome::kMalformed;
    const MemoryRef* const found = tables_.memory.Find(arg.handle);
    if (found == nullptr) {
      if (waits_.WaitsForMemory(stream, arg.handle)) return waits_.Park(stream, ParkReason::kPoint);
      return Outcome::kMalformed;
    }
    MemoryEntry* const entry = found->get();
    if (arg.value > entry->bytes) return Outcome::kMalformed;
    const bool is_needed = Reads(arg.access) || entry->memory == nullptr;
    if (is_needed) TakeFirst(cause, entry->poison.by());
    // Without an access, the function gets the address and leaves the contents alone.
    if (Reads(arg.access) || Writes(arg.access)) *next_use++ = {entry, UseOf(arg.access, is_needed)};
  }
  noted.use_count = static_cast<uint32_t>(next_use - noted.uses.data());
  return std::nullopt;
}

}  // namespace millrace
