// Copies: within a device, between two, to and from host memory, and by axes.
//
// A copy may name memory of other devices. Their channels' tables are looked into under a lock, and a stream that finds
// nothing there yet waits as it does for memory of its own device. Those devices do not close while the copy is handed
// to the backend, and let go of their memory only when it is over.

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "runtime/channel.h"
#include "runtime/registry.h"
#include "runtime/strided.h"

namespace millrace {

using protocol::MemorySpace;

namespace {

/// The pump looks after so many bytes whether it is to stop: well below what the end of an environment waits for.
constexpr uint64_t kPumpChunk = 256ull << 20;

}  // namespace

/// One end of a copy: what the record says, and what was found.
struct Channel::CopyEnd {
  Channel* home = nullptr;  // Null when its device is lost or closed.
  uint16_t space = 0;
  uint32_t handle = 0;
  uint64_t offset = 0;

  std::byte* address = nullptr;
  MemoryRef* entry = nullptr;  // Null for host memory.
  MemoryRef held;              // Of another device.
  bool is_locked = true;

  [[nodiscard]] bool IsWhole(uint64_t bytes) const {
    return entry != nullptr && offset == 0 && bytes == (*entry)->bytes;
  }
};

Channel::Outcome Channel::IssueCopy(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyRecord record;
  if (!reader.Read(record)) return FailMalformed(stream, ticket);
  if (stream.pumped != nullptr && !stream.pumped->is_staging) return EndPumpedCopy(stream, ticket);
  if (stream.pumped != nullptr && !stream.pumped->is_done) return Park(stream, ParkReason::kPeer);
  CopyEnd dst{.home = this, .space = record.dst_space, .handle = record.dst_handle, .offset = record.dst_offset};
  CopyEnd src{.home = this, .space = record.src_space, .handle = record.src_handle, .offset = record.src_offset};
  if (record.dst_device == id_ && record.src_device == id_) return CopyBetween(stream, ticket, record.bytes, dst, src);

  const std::shared_ptr<Channel> homes[] = {HomeOf(record.dst_device), HomeOf(record.src_device)};
  std::unique_lock<std::mutex> locks[2];
  // In the order of the ids, so that no two who lock the same two wait for each other.
  const int first = record.dst_device <= record.src_device ? 0 : 1;
  for (const int n : {first, 1 - first}) {
    CopyEnd& end = n == 0 ? dst : src;
    end.home = homes[n].get();
    if (end.home == nullptr || end.home == this) continue;
    // Host memory is anybody's; device memory is reached by its own backend alone.
    const bool is_device = end.space == static_cast<uint16_t>(MemorySpace::kDevice);
    if (is_device && &end.home->backend() != &backend_) return FailMalformed(stream, ticket);
    if (n == first || homes[0] != homes[1]) locks[n] = std::unique_lock(end.home->access_mutex());
    if (end.home->LostStatus() != StatusCode::kOk || end.home->device() == nullptr) end.home = nullptr;
  }
  return CopyBetween(stream, ticket, record.bytes, dst, src);
}

std::shared_ptr<Channel> Channel::HomeOf(uint32_t device) {
  return device == id_ ? shared_from_this() : Registry::Instance().Find(device);
}

Channel::Sight Channel::FindEnd(StreamState& stream, CopyEnd& end, uint64_t bytes) {
  if (end.home == nullptr) return Sight::kFound;  // The copy fails, and may have to spoil its other end.
  uint64_t size = 0;
  if (end.space == static_cast<uint16_t>(MemorySpace::kDevice)) {
    if (end.home == this) {
      if (WaitsForMemory(stream, end.handle)) return Sight::kLater;
      end.entry = memory_.Find(end.handle);
    } else {
      auto seen = end.home->memory_.Look(end.handle, shared_from_this(), stream.index());
      if (seen.comes_later) return Sight::kLater;
      if (seen.object) end.entry = &(end.held = std::move(*seen.object));
    }
    if (end.entry == nullptr) return Sight::kMalformed;
    end.address = (*end.entry)->address;
    size = (*end.entry)->bytes;
  } else {
    std::optional<HostEntry> host;
    if (end.home == this) {
      if (const HostEntry* found = host_.Find(end.handle)) {
        host = *found;
      } else if (host_.WaitsFor(end.handle, shared_from_this(), stream.index())) {
        return Sight::kLater;
      }
    } else {
      const auto seen = end.home->host_.Look(end.handle, shared_from_this(), stream.index());
      if (seen.comes_later) return Sight::kLater;
      host = seen.object;
    }
    if (!host || end.space != static_cast<uint16_t>(MemorySpace::kHost)) return Sight::kMalformed;
    end.address = host->bytes.data();
    end.is_locked = host->is_page_locked;
    size = host->bytes.size();
  }
  if (!Fits(end.offset, bytes, size)) return Sight::kMalformed;
  if (end.address != nullptr) end.address += end.offset;
  return Sight::kFound;
}

Channel::Outcome Channel::CopyBetween(StreamState& stream, Ticket ticket, uint64_t bytes, CopyEnd& dst, CopyEnd& src) {
  const std::shared_ptr<PumpedRecord> staging = std::exchange(stream.pumped, nullptr);
  for (CopyEnd* end : {&dst, &src}) {
    const Sight sight = FindEnd(stream, *end, bytes);
    if (sight == Sight::kMalformed) return FailMalformed(stream, ticket);
    if (sight == Sight::kFound) continue;
    const bool is_host = end->space != static_cast<uint16_t>(MemorySpace::kDevice);
    return ParkFor(stream, *end->home, is_host ? ParkReason::kPin : ParkReason::kPoint);
  }
  const std::span<MemoryRef* const> outputs(&dst.entry, dst.entry == nullptr ? 0 : 1);
  if (stream.doomed_by != 0) return FailDoomed(stream, ticket, outputs);
  if (dst.home == nullptr || src.home == nullptr) return FailGone(stream, ticket, outputs);
  if (src.entry != nullptr && (*src.entry)->spoil.by() != 0)
    return FailUpstream(stream, ticket, (*src.entry)->spoil.by(), outputs);
  if (dst.entry != nullptr && (*dst.entry)->address == nullptr)
    return FailUpstream(stream, ticket, (*dst.entry)->spoil.by(), outputs);
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream()}, outputs);
  if (needs_locked_memory_ && !(dst.is_locked && src.is_locked)) return CopyByPump(stream, ticket, bytes, dst, src);

  Status status;
  if (dst.entry != nullptr && src.entry != nullptr && (dst.home != this || src.home != this)) {
    auto route = std::optional(protocol::PeerRoute::kDirect);
    if (dst.home != src.home) route = dst.home->roads_.Find(src.home->id(), shared_from_this(), stream.index());
    if (!route) return ParkFor(stream, *dst.home, ParkReason::kPeer);
    if (*route == protocol::PeerRoute::kStaged && !stream.backend->HasStaging(bytes)) {
      if (staging == nullptr) return StageByPump(stream, bytes);
      return FailDriver(stream, ticket, staging->status, 0, outputs);
    }
    status = stream.backend->CopyPeer(ticket, {.dst = dst.address,
                                               .dst_device = dst.home->device_.get(),
                                               .src = src.address,
                                               .src_device = src.home->device_.get(),
                                               .bytes = bytes,
                                               .route = *route});
  } else {
    status = stream.backend->Copy(ticket, dst.address, src.address, bytes);
  }
  if (status.code() == StatusCode::kUpstream) return FailGone(stream, ticket, outputs);
  if (!status.ok()) return FailDriver(stream, ticket, status, 0, outputs);
  NoteForeignUse(stream, ticket, dst, src);
  if (dst.IsWhole(bytes)) (*dst.entry)->spoil.Overwrite();
  return Outcome::kIssued;
}

void Channel::NoteForeignUse(StreamState& stream, Ticket ticket, const CopyEnd& dst, const CopyEnd& src) {
  for (const CopyEnd* end : {&dst, &src}) {
    if (end->home != this) end->home->foreign_uses_.Add(weak_from_this(), stream, ticket);
  }
}

Channel::Outcome Channel::FailGone(StreamState& stream, Ticket ticket, std::span<MemoryRef* const> outputs) {
  const Status status(StatusCode::kDeviceLost, "a device whose memory the copy names is lost or closed");
  return Fail(stream, ticket, {.status = status}, outputs);
}

// ── By the pump ────────────────────────────────────────────────────────────────────────────────────────────────────

Channel::Outcome Channel::PumpFor(StreamState& stream, ParkReason reason, std::shared_ptr<PumpedRecord> record,
                                  std::function<void(PumpedRecord&)> work) {
  stream.pumped = record;
  stream.is_pumping.store(true);
  // The channel outlives its pump's work.
  pump_.Do([this, &stream, index = stream.index(), record = std::move(record), work = std::move(work)] {
    work(*record);
    stream.is_pumping.store(false);
    Post([this, index, record] {
      record->is_done = true;
      WakeStream(index);
    });
  });
  return Park(stream, reason);
}

Channel::Outcome Channel::CopyByPump(StreamState& stream, Ticket ticket, uint64_t bytes, CopyEnd& dst, CopyEnd& src) {
  if (stream.Completed() < ticket - 1 && stream.AddWaiter(ticket - 1, true, shared_from_this(), stream.index())) {
    SignalDirty();
    WatchIfPolled(stream);
    return Park(stream, ParkReason::kPump);
  }
  SignalDirty();  // Nothing reaches the stream while it is pumped.
  NoteForeignUse(stream, ticket, dst, src);
  auto record = std::make_shared<PumpedRecord>();
  if (dst.entry != nullptr) record->written = *dst.entry;
  record->is_whole = dst.IsWhole(bytes);
  // Between two places of host memory there is nothing to ask the device.
  hal::Stream* const backend = dst.entry == nullptr && src.entry == nullptr ? nullptr : stream.backend.get();
  return PumpFor(stream, ParkReason::kPump, std::move(record),
                 [this, backend, to = dst.address, from = src.address, bytes](PumpedRecord& pumped) {
                   for (uint64_t done = 0; done < bytes && pumped.status.ok();) {
                     const uint64_t count = std::min(bytes - done, kPumpChunk);
                     if (pump_.IsStopping() || is_abandoned_.load(std::memory_order_acquire)) {
                       pumped.status = Closed();
                     } else if (backend != nullptr) {
                       pumped.status = backend->CopyPageable(to + done, from + done, count);
                     } else {
                       std::memcpy(to + done, from + done, count);
                     }
                     done += count;
                   }
                 });
}

Channel::Outcome Channel::StageByPump(StreamState& stream, uint64_t bytes) {
  auto record = std::make_shared<PumpedRecord>();
  record->is_staging = true;
  SignalDirty();  // Nothing reaches the stream while it is pumped.
  return PumpFor(
      stream, ParkReason::kPeer, std::move(record),
      [backend = stream.backend.get(), bytes](PumpedRecord& made) { made.status = backend->MakeStaging(bytes); });
}

Channel::Outcome Channel::EndPumpedCopy(StreamState& stream, Ticket ticket) {
  if (!stream.pumped->is_done) return Park(stream, ParkReason::kPump);
  const std::shared_ptr<PumpedRecord> pumped = std::exchange(stream.pumped, nullptr);
  MemoryRef* const written = &pumped->written;
  const std::span<MemoryRef* const> outputs(&written, pumped->written == nullptr ? 0 : 1);
  if (pumped->status.code() == StatusCode::kUpstream) return FailGone(stream, ticket, outputs);
  if (!pumped->status.ok()) return FailDriver(stream, ticket, pumped->status, 0, outputs);
  if (pumped->is_whole) pumped->written->spoil.Overwrite();
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

// ── By axes ────────────────────────────────────────────────────────────────────────────────────────────────────────

Channel::Outcome Channel::IssueCopyStrided(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyStridedRecord record;
  StridedAxes axes;
  if (!reader.Read(record) || !IsElementSize(record.element_bytes) ||
      !ReadAxes(reader, record.rank, record.element_bytes, axes)) {
    return FailMalformed(stream, ticket);
  }
  if (WaitsForMemory(stream, record.dst_handle) || WaitsForMemory(stream, record.src_handle))
    return Park(stream, ParkReason::kPoint);
  MemoryRef* const dst = memory_.Find(record.dst_handle);
  MemoryRef* const src = memory_.Find(record.src_handle);
  const uint32_t size = record.element_bytes;
  if (dst == nullptr || src == nullptr || record.dst_offset % size != 0 || record.src_offset % size != 0 ||
      !StridesFit(axes, &hal::StridedAxis::dst_stride, size, record.dst_offset, (*dst)->bytes) ||
      !StridesFit(axes, &hal::StridedAxis::src_stride, size, record.src_offset, (*src)->bytes)) {
    return FailMalformed(stream, ticket);
  }
  MemoryRef* const outputs[] = {dst};
  if (stream.doomed_by != 0) return FailDoomed(stream, ticket, outputs);
  if ((*src)->spoil.by() != 0) return FailUpstream(stream, ticket, (*src)->spoil.by(), outputs);
  if ((*dst)->address == nullptr) return FailUpstream(stream, ticket, (*dst)->spoil.by(), outputs);
  if (stream.backend == nullptr) return Fail(stream, ticket, {.status = NoStream()}, outputs);
  const Status status = stream.backend->CopyStrided(ticket, (*dst)->address + record.dst_offset,
                                                    (*src)->address + record.src_offset, size, axes.span());
  if (!status.ok()) return FailDriver(stream, ticket, status, 0, outputs);
  if (CoversAll(axes, size, (*dst)->bytes)) (*dst)->spoil.Overwrite();
  return Outcome::kIssued;
}

}  // namespace millrace
