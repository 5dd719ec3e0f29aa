// Records that touch memory: allocations, frees, fills, copies and launches.

#include <algorithm>
#include <utility>

#include "runtime/channel.h"

namespace millrace {

using protocol::Access;
using protocol::ArgKind;
using protocol::MemorySpace;

namespace {

constexpr bool Reads(uint8_t access) {
  return (access & static_cast<uint8_t>(Access::kRead)) != 0;
}
constexpr bool Writes(uint8_t access) {
  return (access & static_cast<uint8_t>(Access::kWrite)) != 0;
}

/// True when [offset, offset + bytes) lies inside `size`, without overflow.
constexpr bool Fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

uint32_t SpoiledBy(const std::shared_ptr<MemoryEntry>& entry) {
  return entry->spoil.by();
}

}  // namespace

// ── Memory ─────────────────────────────────────────────────────────────────────────────────────────────────────────

void Channel::BindMemory(uint32_t handle, MemoryRef memory) {
  memory_.Bind(handle, std::move(memory));
  if (const auto waiting = memory_waits_.extract(handle)) {
    for (const uint32_t stream : waiting.mapped()) WakeStream(stream);
  }
}

bool Channel::WaitsForMemory(StreamState& stream, uint32_t handle) {
  if (memory_.Find(handle) != nullptr || !memory_.MayBeBoundLater(handle)) return false;
  memory_waits_[handle].push_back(stream.index());
  return true;
}

Channel::Outcome Channel::IssueAlloc(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::AllocRecord record;
  if (!reader.Read(record) || memory_.Find(record.handle) != nullptr) return FailMalformed(stream, ticket);
  auto entry = std::make_shared<MemoryEntry>();
  entry->bytes = record.bytes;
  Status status = NoStream();
  if (stream.doomed_by != 0) {
    status = Status(StatusCode::kDeviceLost, "the stream waited for a lost device");
  } else if (stream.backend != nullptr) {
    auto allocated = stream.backend->Allocate(ticket, record.bytes);
    if (allocated.ok()) {
      entry->memory = std::move(allocated).value();
      live_memory_.fetch_add(1, std::memory_order_relaxed);
      live_bytes_.fetch_add(record.bytes, std::memory_order_relaxed);
      BindMemory(record.handle, std::move(entry));
      return Outcome::kIssued;
    }
    status = allocated.status();
    if (status.code() == StatusCode::kOutOfMemory && WaitsForFrees(stream)) return Park(stream, ParkReason::kMemory);
  }
  const uint64_t free_bytes = status.code() == StatusCode::kOutOfMemory ? device_->FreeBytes() : 0;
  BindMemory(record.handle, entry);
  MemoryRef* outputs[] = {&entry};
  return Fail(stream, ticket,
              {.status = status, .cause = stream.doomed_by, .requested_bytes = record.bytes, .free_bytes = free_bytes},
              outputs);
}

bool Channel::WaitsForFrees(StreamState& stream) {
  std::erase_if(pending_frees_, [](const auto& pending) { return pending.first->Completed() >= pending.second; });
  if (pending_frees_.empty()) return false;
  auto [freeing, ticket] = pending_frees_.front();
  if (!freeing->AddWaiter(ticket, true, shared_from_this(), stream.index())) {
    WakeStream(stream.index());  // It ended just now: try again at once.
    return true;
  }
  SignalDirty();
  WatchIfPolled(*freeing);
  return true;
}

Channel::Outcome Channel::IssueFree(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FreeRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  if (WaitsForMemory(stream, record.handle)) return Park(stream, ParkReason::kPoint);
  MemoryRef* found = memory_.Find(record.handle);
  if (found == nullptr) return FailMalformed(stream, ticket);
  const MemoryRef entry = std::move(*found);
  memory_.Release(record.handle);
  if (entry->memory == nullptr || stream.backend == nullptr) {
    CloseTicket(stream, ticket);
    return Outcome::kIssued;
  }
  live_memory_.fetch_sub(1, std::memory_order_relaxed);
  live_bytes_.fetch_sub(entry->bytes, std::memory_order_relaxed);
  constexpr size_t kPruneAt = 256;
  if (pending_frees_.size() >= kPruneAt) {
    std::erase_if(pending_frees_, [](const auto& pending) { return pending.first->Completed() >= pending.second; });
  }
  pending_frees_.emplace_back(&stream, ticket);
  const Status status = stream.backend->Free(ticket, std::move(entry->memory));
  return status.ok() ? Outcome::kIssued : FailDriver(stream, ticket, status, 0, {});
}

Channel::Outcome Channel::IssueFill(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FillRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  if (WaitsForMemory(stream, record.handle)) return Park(stream, ParkReason::kPoint);
  MemoryRef* entry = memory_.Find(record.handle);
  const uint32_t size = record.element_bytes;
  if (entry == nullptr || (size != 1 && size != 2 && size != 4 && size != 8) || record.count > UINT64_MAX / size ||
      !Fits(record.offset, record.count * size, (*entry)->bytes) || record.offset % size != 0) {
    return FailMalformed(stream, ticket);
  }
  const bool is_whole = record.offset == 0 && record.count * size == (*entry)->bytes;
  MemoryRef* outputs[] = {entry};
  if (stream.doomed_by != 0) return FailDoomed(stream, ticket, outputs);
  if ((*entry)->memory == nullptr) return FailUpstream(stream, ticket, SpoiledBy(*entry), outputs);
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream()}, outputs);
  std::byte* const dst = (*entry)->memory->address() + record.offset;
  const Status status = stream.backend->Fill(ticket, dst, size, record.pattern, record.count);
  if (!status.ok()) return FailDriver(stream, ticket, status, 0, outputs);
  if (is_whole) (*entry)->spoil.Overwrite();
  return Outcome::kIssued;
}

Channel::Outcome Channel::IssueCopy(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  struct Side {
    std::byte* address = nullptr;
    MemoryRef* entry = nullptr;
  };
  Side sides[2];
  const auto spaces = {record.dst_space, record.src_space};
  const uint32_t handles[2] = {record.dst_handle, record.src_handle};
  const uint64_t offsets[2] = {record.dst_offset, record.src_offset};
  for (int n = 0; const uint16_t space : spaces) {
    Side& side = sides[n];
    if (static_cast<MemorySpace>(space) == MemorySpace::kDevice) {
      if (WaitsForMemory(stream, handles[n])) return Park(stream, ParkReason::kPoint);
      side.entry = memory_.Find(handles[n]);
      if (side.entry == nullptr || !Fits(offsets[n], record.bytes, (*side.entry)->bytes))
        return FailMalformed(stream, ticket);
      if ((*side.entry)->memory != nullptr) side.address = (*side.entry)->memory->address() + offsets[n];
    } else {
      HostEntry& host = host_.FindOrBind(handles[n]);
      if (host.state == ResourceState::kPending) {
        host.parked.push_back(stream.index());
        return Park(stream, ParkReason::kPin);
      }
      if (!Fits(offsets[n], record.bytes, host.bytes.size())) return FailMalformed(stream, ticket);
      // Memory that could not be page-locked still copies, only slower; the owner was told.
      side.address = host.bytes.data() + offsets[n];
    }
    ++n;
  }
  MemoryRef* const dst = sides[0].entry;
  MemoryRef* const src = sides[1].entry;
  const std::span<MemoryRef* const> outputs =
      dst == nullptr ? std::span<MemoryRef* const>() : std::span<MemoryRef* const>(&dst, 1);
  if (stream.doomed_by != 0) return FailDoomed(stream, ticket, outputs);
  if (src != nullptr && SpoiledBy(*src) != 0) return FailUpstream(stream, ticket, SpoiledBy(*src), outputs);
  if (dst != nullptr && (*dst)->memory == nullptr) return FailUpstream(stream, ticket, SpoiledBy(*dst), outputs);
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream()}, outputs);
  const Status status = stream.backend->Copy(ticket, sides[0].address, sides[1].address, record.bytes);
  if (!status.ok()) return FailDriver(stream, ticket, status, 0, outputs);
  const bool is_whole = dst != nullptr && record.dst_offset == 0 && record.bytes == (*dst)->bytes;
  if (is_whole) (*dst)->spoil.Overwrite();
  return Outcome::kIssued;
}

// ── Kernels ────────────────────────────────────────────────────────────────────────────────────────────────────────

Channel::Outcome Channel::IssueLaunch(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::LaunchRecord record;
  if (!reader.Read(record) || record.arg_count > protocol::kMaxLaunchArgs) return FailMalformed(stream, ticket);
  KernelEntry& kernel = kernels_.FindOrBind(record.kernel);
  if (kernel.state == ResourceState::kPending) {
    kernel.parked.push_back(stream.index());
    return Park(stream, ParkReason::kBuild);
  }

  uint64_t values[protocol::kMaxLaunchArgs + 2];
  void* params[protocol::kMaxLaunchArgs + 2];
  uint32_t cause = 0;
  outputs_scratch_.clear();
  overwritten_scratch_.clear();
  for (uint32_t n = 0; n < record.arg_count; ++n) {
    protocol::LaunchArg arg;
    if (!reader.Read(arg)) return FailMalformed(stream, ticket);
    params[n] = &values[n];
    values[n] = arg.value;
    if (static_cast<ArgKind>(arg.kind) == ArgKind::kScalar) continue;
    if (WaitsForMemory(stream, arg.handle)) return Park(stream, ParkReason::kPoint);
    MemoryRef* entry = memory_.Find(arg.handle);
    if (entry == nullptr || arg.value > (*entry)->bytes) return FailMalformed(stream, ticket);
    if (Writes(arg.access)) outputs_scratch_.push_back(entry);
    const bool is_needed = Reads(arg.access) || (*entry)->memory == nullptr;
    if (cause == 0 && is_needed) cause = SpoiledBy(*entry);
    if (!is_needed) overwritten_scratch_.push_back(entry);
    if ((*entry)->memory != nullptr) values[n] += reinterpret_cast<uintptr_t>((*entry)->memory->address());
  }
  const std::span<MemoryRef* const> outputs(outputs_scratch_);
  if (kernel.state == ResourceState::kFailed)
    return Fail(stream, ticket, {.status = kernel.failure, .kernel = record.kernel}, outputs);
  if (stream.doomed_by != 0) return FailDoomed(stream, ticket, outputs);
  if (cause != 0) return FailUpstream(stream, ticket, cause, outputs);
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream(), .kernel = record.kernel}, outputs);

  uint32_t count = record.arg_count;
  protocol::FaultSlot* slot = nullptr;
  if (kernel.is_checked) {
    stream.faults.Retire(stream.Completed(), fault_slots_);
    slot = fault_slots_.Take(*device_);
    if (slot == nullptr) {
      const Status status(StatusCode::kOutOfMemory, "no memory for fault reports");
      return Fail(stream, ticket, {.status = status, .kernel = record.kernel}, outputs);
    }
    values[count] = reinterpret_cast<uintptr_t>(slot);
    values[count + 1] = reinterpret_cast<uintptr_t>(&stream.slot().fault);
    params[count] = &values[count];
    params[count + 1] = &values[count + 1];
    count += 2;
  }
  const hal::LaunchRequest request{
      .kernel = kernel.kernel.get(),
      .grid = {record.grid_x, record.grid_y, record.grid_z},
      .block = {record.block_x, record.block_y, record.block_z},
      .shared_bytes = record.shared_bytes,
      .params = {params, count},
  };
  for (MemoryRef* entry : overwritten_scratch_) (*entry)->spoil.Overwrite();
  // Watched before it can run: a report may come while the backend still returns.
  if (slot != nullptr) stream.faults.Add(ticket, record.kernel, slot, outputs_scratch_);
  const Status status = stream.backend->Launch(ticket, request);
  if (!status.ok()) return FailDriver(stream, ticket, status, record.kernel, outputs);
  return Outcome::kIssued;
}

void Channel::CollectFaults(StreamState& stream) {
  // Kept raised until the reports are failures: an owner who saw it lowered would take the launch for a success.
  constexpr uint32_t kCollecting = 2;
  const std::atomic_ref flag(stream.slot().fault);
  flag.store(kCollecting, std::memory_order_seq_cst);
  stream.faults.Collect([&](FaultWatch::Launch& launch) {
    const Failure failure{.id = next_failure_.fetch_add(1),
                          .first = launch.ticket,
                          .last = launch.ticket,
                          .status = Status(StatusCode::kBounds, "an array access is out of bounds"),
                          .kernel = launch.kernel,
                          .has_fault = true,
                          .fault = *launch.slot};
    const uint32_t id = stream.failures.Add(failure, stream.slot());
    for (const FaultWatch::Output& output : launch.outputs) output.entry->spoil.SetIf(output.version, id);
    launch.outputs.clear();
  });
  // Unless another kernel raised it meanwhile.
  uint32_t collecting = kCollecting;
  flag.compare_exchange_strong(collecting, 0);
}

}  // namespace millrace
