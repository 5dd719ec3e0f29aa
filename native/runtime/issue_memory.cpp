// Records that allocate, free and fill device memory.

#include <utility>
#include <vector>

#include "runtime/channel.h"
#include "runtime/strided.h"

namespace millrace {

using protocol::AllocKind;

bool Channel::WaitsForMemory(StreamState& stream, uint32_t handle) {
  return tables_.memory.Find(handle) == nullptr && tables_.memory.WaitsFor(handle, shared_from_this(), stream.index());
}

// ── Allocations ────────────────────────────────────────────────────────────────────────────────────────────────────

Channel::Outcome Channel::IssueAlloc(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::AllocRecord record;
  if (!reader.Read(record) || record.kind > static_cast<uint32_t>(AllocKind::kInterprocess) ||
      tables_.memory.Find(record.handle) != nullptr) {
    return FailMalformed(stream, ticket);
  }
  if (stream.poisoned_by != 0) {
    return FailAlloc(stream, ticket, record, Status(StatusCode::kDeviceLost, "the stream waited for a lost device"));
  }
  if (stream.backend == nullptr) return FailAlloc(stream, ticket, record, NoStream());
  if (static_cast<AllocKind>(record.kind) == AllocKind::kInterprocess) return AllocByPump(stream, ticket, record);
  const ResourceTables::Allocating allocating(tables_, record.handle);
  return AllocFromPool(stream, ticket, record);
}

Channel::Outcome Channel::AllocFromPool(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record) {
  if (stream.pumped != nullptr && !stream.pumped->is_done) return Park(stream, ParkReason::kMemory);
  const bool is_last_try = std::exchange(stream.pumped, nullptr) != nullptr;
  auto allocated = stream.backend->Allocate(ticket, record.bytes);
  if (allocated.status().code() == StatusCode::kOutOfMemory) {
    if (WaitsForFrees(stream)) return Park(stream, ParkReason::kMemory);
    // Try again: a pending free may have completed since the first attempt.
    allocated = stream.backend->Allocate(ticket, record.bytes);
  }
  if (allocated.status().code() == StatusCode::kOutOfMemory && !is_last_try && device_.device().KeptBytes() > 0) {
    SignalDirty();  // The pump may wait for issued work, so flush it first.
    return PumpFor(stream, ParkReason::kMemory, std::make_shared<PumpedRecord>(),
                   [device = &device_.device()](PumpedRecord&) { device->GiveBackKept(); });
  }
  if (allocated.ok()) {
    tables_.owned.AddMemory(stream.owner_id, record.handle);
    tables_.BindMemory(record.handle, static_cast<AllocKind>(record.kind), record.bytes, std::move(allocated).value());
    return Outcome::kIssued;
  }
  return FailAlloc(stream, ticket, record, allocated.status());
}

Channel::Outcome Channel::AllocByPump(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record) {
  bool is_last_try = false;
  if (stream.pumped != nullptr) {
    if (!stream.pumped->is_done) return Park(stream, ParkReason::kMemory);
    const std::shared_ptr<PumpedRecord> pumped = std::exchange(stream.pumped, nullptr);
    if (pumped->memory != nullptr) {
      tables_.owned.AddMemory(stream.owner_id, record.handle);
      tables_.BindMemory(record.handle, AllocKind::kInterprocess, record.bytes, std::move(pumped->memory));
      CloseTicket(stream, ticket);
      return Outcome::kIssued;
    }
    const bool has_no_room = pumped->status.code() == StatusCode::kOutOfMemory;
    if (has_no_room && WaitsForFrees(stream)) return Park(stream, ParkReason::kMemory);
    // Unless this was the last attempt, try again: a pending free may have completed meanwhile.
    if (!has_no_room || pumped->is_last_try) return FailAlloc(stream, ticket, record, pumped->status);
    is_last_try = true;
  }
  auto pumped = std::make_shared<PumpedRecord>();
  pumped->is_last_try = is_last_try;
  return PumpFor(stream, ParkReason::kMemory, std::move(pumped),
                 [device = &device_.device(), bytes = record.bytes](PumpedRecord& made) {
                   auto memory = device->AllocateInterprocess(bytes);
                   made.status = memory.status();
                   if (memory.ok()) made.memory = std::move(memory).value();
                 });
}

Channel::Outcome Channel::FailAlloc(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record,
                                    Status why) {
  auto entry = std::make_shared<MemoryEntry>();
  entry->bytes = record.bytes;
  MemoryRef* outputs[] = {&entry};
  const uint64_t free_bytes = why.code() == StatusCode::kOutOfMemory ? device_.device().FreeBytes() : 0;
  RecordFailure(stream, ticket,
                {.status = why,
                 .cause = stream.poisoned_by,
                 .lost_device = stream.lost_device,
                 .requested_bytes = record.bytes,
                 .free_bytes = free_bytes},
                {.memory = outputs});
  tables_.owned.AddMemory(stream.owner_id, record.handle);
  tables_.memory.Bind(record.handle, std::move(entry));
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueAdopt(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::AdoptRecord record;
  if (!reader.Read(record) || tables_.memory.Find(record.handle) != nullptr) return FailMalformed(stream, ticket);
  if (WaitsForMemory(stream, record.source)) {
    // A FREE may stand right behind the ALLOC that this waits for.
    if (std::exchange(stream.claimed, record.source) != record.source) tables_.claims.Add(record.source);
    return Park(stream, ParkReason::kPoint);
  }
  if (stream.claimed == record.source) {
    stream.claimed = 0;
    for (StreamState* const waiting : tables_.claims.Remove(record.source)) inbox_.Wake(*waiting);
  }
  const MemoryRef* const found = tables_.memory.Find(record.source);
  const protocol::AllocRecord adopted{.handle = record.handle, .bytes = record.bytes};
  if (stream.poisoned_by != 0) {
    return FailAlloc(stream, ticket, adopted, Status(StatusCode::kDeviceLost, "the stream waited for a lost device"));
  }
  if (stream.backend == nullptr) return FailAlloc(stream, ticket, adopted, NoStream());
  if (found == nullptr || (*found)->bytes < record.bytes) {
    return FailAlloc(stream, ticket, adopted,
                     Status(StatusCode::kState, "the shared array was disposed before it was adopted"));
  }
  const MemoryRef entry = *found;  // The table may move what it holds.
  tables_.owned.AddMemory(stream.owner_id, record.handle);
  tables_.BindAdopted(record.handle, entry);
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueFree(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FreeRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  if (WaitsForMemory(stream, record.handle)) return Park(stream, ParkReason::kPoint);
  if (tables_.claims.Contains(record.handle)) {
    tables_.claims.Await(stream);
    return Park(stream, ParkReason::kPoint);
  }
  if (const MemoryRef* const found = tables_.memory.Find(record.handle); found != nullptr && (*found)->handles == 1) {
    // Other threads freed their handles behind their uses, which must have ended too.
    for (const auto& [freeing, freed] : (*found)->freed_by) {
      if (WaitsForEnd(stream, *freeing, freed)) return Park(stream, ParkReason::kPoint);
    }
  }
  const std::optional<MemoryRef> taken = tables_.memory.Take(record.handle);
  if (!taken) return FailMalformed(stream, ticket);
  tables_.owned.RemoveMemory(stream.owner_id, record.handle);
  const MemoryRef& entry = *taken;
  if (--entry->handles > 0) {
    entry->freed_by.emplace_back(&stream, ticket);
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  if (entry->memory == nullptr) {
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  tables_.CountFreed(*entry);
  if (stream.backend == nullptr) {
    // The stream could not be created. It has come to the end of all uses, since it waits for them on the host.
    entry->memory.reset();
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  NotePendingFree(stream, ticket);
  const Status status = stream.backend->Free(ticket, std::move(entry->memory));
  return status.ok() ? Outcome::kIssued : FailDriver(stream, ticket, status, 0, {});
}

// ── Fills ──────────────────────────────────────────────────────────────────────────────────────────────────────────

template <typename Call>
Channel::Outcome Channel::FillEntry(StreamState& stream, Ticket ticket, MemoryRef& entry, bool is_whole, Call call) {
  MemoryRef* const written[] = {&entry};
  const Outputs outputs{.memory = written};
  const uint32_t cause = entry->address == nullptr ? entry->poison.by() : 0;
  if (const auto failed = FailUnready(stream, ticket, cause, outputs)) return *failed;
  if (is_whole) entry->poison.Overwrite();
  const Status status = call(entry->address);
  return status.ok() ? Outcome::kIssued : FailDriver(stream, ticket, status, 0, outputs);
}

Channel::Outcome Channel::IssueFill(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FillRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  if (WaitsForMemory(stream, record.handle)) return Park(stream, ParkReason::kPoint);
  MemoryRef* entry = tables_.memory.Find(record.handle);
  const uint32_t size = record.element_bytes;
  if (entry == nullptr || !IsElementSize(size) || record.count > UINT64_MAX / size ||
      !Fits(record.offset, record.count * size, (*entry)->bytes) || record.offset % size != 0) {
    return FailMalformed(stream, ticket);
  }
  const bool is_whole = record.offset == 0 && record.count * size == (*entry)->bytes;
  return FillEntry(stream, ticket, *entry, is_whole, [&](std::byte* base) {
    return stream.backend->Fill(ticket, base + record.offset, size, record.pattern, record.count);
  });
}

Channel::Outcome Channel::IssueFillStrided(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FillStridedRecord record;
  StridedAxes axes;
  if (!reader.Read(record) || !IsElementSize(record.element_bytes) ||
      !ReadAxes(reader, record.rank, record.element_bytes, axes)) {
    return FailMalformed(stream, ticket);
  }
  if (WaitsForMemory(stream, record.handle)) return Park(stream, ParkReason::kPoint);
  MemoryRef* entry = tables_.memory.Find(record.handle);
  const uint32_t size = record.element_bytes;
  if (entry == nullptr || record.offset % size != 0 ||
      !StridesFit(axes, &hal::StridedAxis::dst_stride, size, record.offset, (*entry)->bytes)) {
    return FailMalformed(stream, ticket);
  }
  return FillEntry(stream, ticket, *entry, CoversAll(axes, size, (*entry)->bytes), [&](std::byte* base) {
    return stream.backend->FillStrided(ticket, base + record.offset, size, record.pattern, axes.span());
  });
}

}  // namespace millrace
