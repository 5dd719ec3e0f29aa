#include "runtime/issue/texture_records.h"
#include "runtime/fault_reports.h"

#include <memory>
#include <utility>

#include "runtime/device_access.h"
#include "runtime/issue/outputs.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/resource_tables.h"
#include "runtime/texture_shapes.h"

namespace millrace {

using protocol::AllocKind;

namespace {

bool AreModes(const protocol::CreateTextureRecord& record) {
  constexpr auto kLastMode = static_cast<uint8_t>(protocol::TextureAddress::kBorder);
  return record.address_x <= kLastMode && record.address_y <= kLastMode && record.address_z <= kLastMode &&
         record.filter <= static_cast<uint8_t>(protocol::TextureFilter::kLinear);
}

/// Whether the memory has all elements.
bool Reaches(const protocol::CreateTextureRecord& record, const MemoryEntry& memory) {
  const uint64_t row = hal::RowBytes(record.shape);
  const uint64_t rows = hal::RowCount(record.shape);
  if (record.pitch == 0) {
    return memory.kind == AllocKind::kArray && record.offset == 0 && hal::TotalBytes(record.shape) == memory.bytes;
  }
  constexpr uint64_t kMostPitch = 1ull << 32;
  if (memory.kind == AllocKind::kArray || record.pitch < row || record.pitch > kMostPitch) return false;
  return Fits(record.offset, (rows - 1) * record.pitch + row, memory.bytes);
}

}  // namespace

Outcome TextureRecords::Create(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CreateTextureRecord record;
  if (!reader.ReadFields(record) || !tables_.memory.IsFree(record.handle) || !IsShape(record.shape) ||
      !AreModes(record)) {
    return Outcome::kMalformed;
  }
  if (waits_.WaitsForMemory(stream, record.source)) return waits_.Park(stream, ParkReason::kPoint);
  MemoryRef* const source = tables_.memory.Find(record.source);
  if (source == nullptr || !Reaches(record, **source)) return Outcome::kMalformed;

  auto made = std::make_shared<MemoryEntry>();
  const MemoryUse written[] = {{made.get(), Use::kWrite}};
  const Outputs outputs{.memory = written};
  const auto bind_failed = [&](Outcome outcome) {
    tables_.owned.AddMemory(stream.owner_id, record.handle);
    tables_.memory.Bind(record.handle, made);
    return outcome;
  };
  if (const auto failed = ends_.FailUnready(stream, ticket, 0, outputs)) return bind_failed(*failed);
  if ((*source)->address == nullptr) {
    // The failure of the allocation is reported already, and is that of all uses of the texture.
    tables_.owned.AddMemory(stream.owner_id, record.handle);
    tables_.BindPoisoned(record.handle, 0, (*source)->poison.by());
    return ends_.CloseTicket(stream, ticket);
  }
  auto created =
      device_.device().CreateTexture({.address = (*source)->address + record.offset,
                                      .pitch = record.pitch,
                                      .shape = record.shape,
                                      .filter = static_cast<protocol::TextureFilter>(record.filter),
                                      .address_modes = {static_cast<protocol::TextureAddress>(record.address_x),
                                                        static_cast<protocol::TextureAddress>(record.address_y),
                                                        static_cast<protocol::TextureAddress>(record.address_z)},
                                      .flags = record.flags});
  if (!created.ok()) return bind_failed(ends_.FailDriver(stream, ticket, created.status(), 0, outputs));
  tables_.owned.AddMemory(stream.owner_id, record.handle);
  // The value has no bytes of device memory.
  tables_.BindMemory(record.handle, AllocKind::kTexture, 0, std::move(created).value());
  return ends_.CloseTicket(stream, ticket);
}

Outcome TextureRecords::Copy(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyArrayRecord record;
  if (!reader.ReadFields(record) || !IsShape(record.shape)) return Outcome::kMalformed;
  if (waits_.WaitsForMemory(stream, record.array) || waits_.WaitsForMemory(stream, record.memory))
    return waits_.Park(stream, ParkReason::kPoint);
  MemoryRef* const array = tables_.memory.Find(record.array);
  MemoryRef* const memory = tables_.memory.Find(record.memory);
  const uint64_t bytes = hal::TotalBytes(record.shape);
  if (array == nullptr || memory == nullptr || !Fits(record.offset, bytes, (*memory)->bytes) ||
      (*array)->bytes != bytes) {
    return Outcome::kMalformed;
  }
  MemoryEntry* const dst = (record.is_upload != 0 ? array : memory)->get();
  MemoryEntry* const src = (record.is_upload != 0 ? memory : array)->get();
  const MemoryUse uses[] = {{src, Use::kRead}, {dst, dst->bytes == bytes ? Use::kOverwrite : Use::kWrite}};
  const Outputs outputs{.memory = uses};
  FailureId cause = src->poison.by();
  if (cause == 0 && dst->address == nullptr) cause = dst->poison.by();
  if (const auto failed = ends_.FailUnready(stream, ticket, cause, outputs)) return *failed;
  if (const FailureId found = faults_.Enter(stream, {.ticket = ticket, .memory = uses}))
    return ends_.FailUpstream(stream, ticket, found, outputs);
  const Status status = stream.backend->CopyArray(ticket, {.array = (*array)->address,
                                                           .memory = (*memory)->address + record.offset,
                                                           .shape = record.shape,
                                                           .is_upload = record.is_upload != 0});
  return status.ok() ? Outcome::kIssued : ends_.FailDriver(stream, ticket, status, 0, outputs);
}

}  // namespace millrace
