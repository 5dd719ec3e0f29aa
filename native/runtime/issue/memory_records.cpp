#include "runtime/issue/memory_records.h"
#include "runtime/fault_reports.h"

#include <memory>
#include <utility>

#include "runtime/device_access.h"
#include "runtime/issue/device_progress.h"
#include "runtime/issue/outputs.h"
#include "runtime/issue/pending_frees.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/resource_tables.h"
#include "runtime/strided.h"
#include "runtime/texture_shapes.h"
#include "runtime/thread_inbox.h"

namespace millrace {

using protocol::AllocKind;

// ── Allocations ────────────────────────────────────────────────────────────────────────────────────────────────────

Outcome MemoryRecords::Alloc(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::AllocRecord record;
  if (!reader.ReadFields(record) || record.kind > static_cast<uint32_t>(AllocKind::kInterprocess) ||
      !tables_.memory.IsFree(record.handle)) {
    return Outcome::kMalformed;
  }
  if (stream.poisoned_by != 0) return FailAlloc(stream, ticket, record, stream.poison);
  if (stream.backend == nullptr) return FailAlloc(stream, ticket, record, RecordEnds::NoStream());
  if (static_cast<AllocKind>(record.kind) == AllocKind::kInterprocess) {
    return AllocOnBlockingThread(stream, ticket, record, [bytes = record.bytes](hal::Device& device) {
      return device.AllocateInterprocess(bytes);
    });
  }
  const ResourceTables::Allocating allocating(tables_, record.handle);
  return AllocFromPool(stream, ticket, record);
}

Outcome MemoryRecords::AllocArray(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::AllocArrayRecord record;
  if (!reader.ReadFields(record) || !tables_.memory.IsFree(record.handle) || !IsShape(record.shape) ||
      record.bytes != hal::TotalBytes(record.shape)) {
    return Outcome::kMalformed;
  }
  const protocol::AllocRecord allocated{
      .handle = record.handle, .kind = static_cast<uint32_t>(AllocKind::kArray), .bytes = record.bytes};
  if (stream.poisoned_by != 0) return FailAlloc(stream, ticket, allocated, stream.poison);
  if (stream.backend == nullptr) return FailAlloc(stream, ticket, allocated, RecordEnds::NoStream());
  return AllocOnBlockingThread(stream, ticket, allocated,
                               [shape = record.shape](hal::Device& device) { return device.AllocateArray(shape); });
}

Outcome MemoryRecords::AllocFromPool(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record) {
  if (stream.blocking_call != nullptr && !stream.blocking_call->is_done)
    return waits_.Park(stream, ParkReason::kMemory);
  const bool is_last_try = std::exchange(stream.blocking_call, nullptr) != nullptr;
  auto allocated = stream.backend->Allocate(ticket, record.bytes);
  if (allocated.status().code() == StatusCode::kOutOfMemory) {
    if (frees_.WaitsFor(stream)) return waits_.Park(stream, ParkReason::kMemory);
    // Try again: a pending free may have completed since the first attempt.
    allocated = stream.backend->Allocate(ticket, record.bytes);
  }
  if (allocated.status().code() == StatusCode::kOutOfMemory && !is_last_try && device_.device().KeptBytes() > 0) {
    progress_.Signal();  // The blocking-calls thread may wait for issued work, so flush it first.
    return waits_.RunOnBlockingThread(stream, ParkReason::kMemory, std::make_shared<BlockingCall>(),
                                      [device = &device_.device()](BlockingCall&) { device->GiveBackKept(); });
  }
  if (allocated.ok()) {
    tables_.owned.AddMemory(stream.owner_id, record.handle);
    tables_.BindMemory(record.handle, static_cast<AllocKind>(record.kind), record.bytes, std::move(allocated).value());
    return Outcome::kIssued;
  }
  return FailAlloc(stream, ticket, record, allocated.status());
}

Outcome MemoryRecords::AllocOnBlockingThread(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record,
                                             std::function<Result<std::unique_ptr<hal::Memory>>(hal::Device&)> make) {
  bool is_last_try = false;
  if (stream.blocking_call != nullptr) {
    if (!stream.blocking_call->is_done) return waits_.Park(stream, ParkReason::kMemory);
    const std::shared_ptr<BlockingCall> blocking_call = std::exchange(stream.blocking_call, nullptr);
    if (blocking_call->memory != nullptr) {
      tables_.owned.AddMemory(stream.owner_id, record.handle);
      tables_.BindMemory(record.handle, static_cast<AllocKind>(record.kind), record.bytes,
                         std::move(blocking_call->memory));
      return ends_.CloseTicket(stream, ticket);
    }
    const bool has_no_room = blocking_call->status.code() == StatusCode::kOutOfMemory;
    if (has_no_room && frees_.WaitsFor(stream)) return waits_.Park(stream, ParkReason::kMemory);
    // Unless this was the last attempt, try again: a pending free may have completed meanwhile.
    if (!has_no_room || blocking_call->is_last_try) return FailAlloc(stream, ticket, record, blocking_call->status);
    is_last_try = true;
  }
  auto blocking_call = std::make_shared<BlockingCall>();
  blocking_call->is_last_try = is_last_try;
  return waits_.RunOnBlockingThread(stream, ParkReason::kMemory, std::move(blocking_call),
                                    [device = &device_.device(), make = std::move(make)](BlockingCall& made) {
                                      auto memory = make(*device);
                                      made.status = memory.status();
                                      if (memory.ok()) made.memory = std::move(memory).value();
                                    });
}

Outcome MemoryRecords::FailAlloc(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record, Status why) {
  auto entry = std::make_shared<MemoryEntry>();
  entry->bytes = record.bytes;
  entry->kind = static_cast<AllocKind>(record.kind);
  const MemoryUse outputs[] = {{entry.get(), Use::kWrite}};
  const uint64_t free_bytes = why.code() == StatusCode::kOutOfMemory ? device_.device().FreeBytes() : 0;
  ends_.RecordFailure(stream, ticket,
                      {.status = why,
                       .cause = stream.poisoned_by,
                       .lost_device = stream.lost_device,
                       .requested_bytes = record.bytes,
                       .free_bytes = free_bytes},
                      {.memory = outputs});
  tables_.owned.AddMemory(stream.owner_id, record.handle);
  tables_.memory.Bind(record.handle, std::move(entry));
  return ends_.CloseTicket(stream, ticket);
}

Outcome MemoryRecords::Adopt(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::AdoptRecord record;
  if (!reader.ReadFields(record) || !tables_.memory.IsFree(record.handle)) return Outcome::kMalformed;
  if (waits_.WaitsForMemory(stream, record.source)) {
    // A FREE may stand right behind the ALLOC that this waits for.
    if (std::exchange(stream.claimed, record.source) != record.source) tables_.claims.Add(record.source);
    return waits_.Park(stream, ParkReason::kPoint);
  }
  if (stream.claimed == record.source) {
    stream.claimed = 0;
    for (StreamState* const waiting : tables_.claims.Remove(record.source)) inbox_.Wake(*waiting);
  }
  const MemoryRef* const found = tables_.memory.Find(record.source);
  const protocol::AllocRecord adopted{.handle = record.handle, .bytes = record.bytes};
  if (stream.poisoned_by != 0) return FailAlloc(stream, ticket, adopted, stream.poison);
  if (stream.backend == nullptr) return FailAlloc(stream, ticket, adopted, RecordEnds::NoStream());
  if (found == nullptr || (*found)->bytes < record.bytes) {
    return FailAlloc(stream, ticket, adopted,
                     Status(StatusCode::kState, "the shared array was disposed before it was adopted"));
  }
  const MemoryRef entry = *found;  // The table may move what it holds.
  tables_.owned.AddMemory(stream.owner_id, record.handle);
  tables_.BindAdopted(record.handle, entry);
  return ends_.CloseTicket(stream, ticket);
}

Outcome MemoryRecords::Free(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FreeRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  if (waits_.WaitsForMemory(stream, record.handle)) return waits_.Park(stream, ParkReason::kPoint);
  if (tables_.claims.Contains(record.handle)) {
    tables_.claims.Await(stream);
    return waits_.Park(stream, ParkReason::kPoint);
  }
  if (const MemoryRef* const found = tables_.memory.Find(record.handle); found != nullptr && (*found)->handles == 1) {
    // Other threads freed their handles behind their uses, which must have ended too.
    for (const auto& [freeing, freed] : (*found)->freed_by) {
      if (waits_.WaitsForEnd(stream, *freeing, freed)) return waits_.Park(stream, ParkReason::kPoint);
    }
  }
  const std::optional<MemoryRef> taken = tables_.memory.Take(record.handle);
  if (!taken) return Outcome::kMalformed;
  tables_.owned.RemoveMemory(stream.owner_id, record.handle);
  const MemoryRef& entry = *taken;
  if (--entry->handles > 0) {
    entry->freed_by.emplace_back(&stream, ticket);
    return ends_.CloseTicket(stream, ticket);
  }
  if (entry->memory == nullptr) {
    return ends_.CloseTicket(stream, ticket);
  }
  tables_.CountFreed(*entry);
  faults_.KeepFreed(entry);
  if (stream.backend == nullptr) {
    // The stream could not be created. It has come to the end of all uses, since it waits for them on the host.
    entry->memory.reset();
    return ends_.CloseTicket(stream, ticket);
  }
  frees_.Note(stream, ticket);
  const Status status = stream.backend->Free(ticket, std::move(entry->memory));
  return status.ok() ? Outcome::kIssued : ends_.FailDriver(stream, ticket, status, 0, {});
}

// ── Fills ──────────────────────────────────────────────────────────────────────────────────────────────────────────

template <typename Call>
Outcome MemoryRecords::FillEntry(StreamState& stream, Ticket ticket, MemoryEntry& entry, bool is_whole, Call call) {
  const MemoryUse uses[] = {{&entry, is_whole ? Use::kOverwrite : Use::kWrite}};
  const Outputs outputs{.memory = uses};
  const FailureId cause = entry.address == nullptr ? entry.poison.by() : 0;
  if (const auto failed = ends_.FailUnready(stream, ticket, cause, outputs)) return *failed;
  if (const FailureId found = faults_.Enter(stream, {.ticket = ticket, .memory = uses}))
    return ends_.FailUpstream(stream, ticket, found, outputs);
  const Status status = call(entry.address);
  return status.ok() ? Outcome::kIssued : ends_.FailDriver(stream, ticket, status, 0, outputs);
}

Outcome MemoryRecords::Fill(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FillRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  if (waits_.WaitsForMemory(stream, record.handle)) return waits_.Park(stream, ParkReason::kPoint);
  MemoryRef* entry = tables_.memory.Find(record.handle);
  const uint32_t size = record.element_bytes;
  if (entry == nullptr || !IsElementSize(size) || record.count > UINT64_MAX / size ||
      !Fits(record.offset, record.count * size, (*entry)->bytes) || record.offset % size != 0) {
    return Outcome::kMalformed;
  }
  const bool is_whole = record.offset == 0 && record.count * size == (*entry)->bytes;
  return FillEntry(stream, ticket, **entry, is_whole, [&](std::byte* base) {
    return stream.backend->Fill(ticket, base + record.offset, size, record.pattern, record.count);
  });
}

Outcome MemoryRecords::FillStrided(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FillStridedRecord record;
  StridedAxes axes;
  if (!reader.ReadFields(record) || !IsElementSize(record.element_bytes) ||
      !ReadAxes(reader, record.rank, record.element_bytes, axes)) {
    return Outcome::kMalformed;
  }
  if (waits_.WaitsForMemory(stream, record.handle)) return waits_.Park(stream, ParkReason::kPoint);
  MemoryRef* entry = tables_.memory.Find(record.handle);
  const uint32_t size = record.element_bytes;
  if (entry == nullptr || record.offset % size != 0 ||
      !StridesFit(axes, &hal::StridedAxis::dst_stride, size, record.offset, (*entry)->bytes)) {
    return Outcome::kMalformed;
  }
  return FillEntry(stream, ticket, **entry, CoversAll(axes, size, (*entry)->bytes), [&](std::byte* base) {
    return stream.backend->FillStrided(ticket, base + record.offset, size, record.pattern, axes.span());
  });
}

}  // namespace millrace
