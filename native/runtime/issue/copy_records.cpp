#include "runtime/issue/copy_records.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/blocking_calls_thread.h"
#include "runtime/channel.h"
#include "runtime/device_access.h"
#include "runtime/fault_reports.h"
#include "runtime/issue/copy_work.h"
#include "runtime/issue/device_progress.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/registry.h"
#include "runtime/strided.h"
#include "runtime/thread_inbox.h"

namespace millrace {

using protocol::MemorySpace;
using protocol::PeerRoute;

namespace {

/// The blocking-calls thread checks after this many bytes whether it must stop. Copying them takes much less time than
/// the end of an environment may wait.
constexpr uint64_t kCopyChunk = 256ull << 20;

/// Of a COPY record, or of a copy of a batch.
template <typename Record>
CopyWork WorkOf(const Record& record, Channel& channel, uint32_t reported) {
  CopyWork copy{.bytes = record.bytes, .flags = record.flags, .reported = reported};
  copy.dst = {.home = &channel,
              .device = record.dst_device,
              .space = record.dst_space,
              .handle = record.dst_handle,
              .offset = record.dst_offset};
  copy.src = {.home = &channel,
              .device = record.src_device,
              .space = record.src_space,
              .handle = record.src_handle,
              .offset = record.src_offset};
  return copy;
}

}  // namespace

Outcome CopyRecords::Copy(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  if (stream.blocking_call != nullptr && !stream.blocking_call->is_staging) return EndBlockingCopy(stream, ticket);
  if (stream.blocking_call != nullptr && !stream.blocking_call->is_done) return waits_.Park(stream, ParkReason::kPeer);
  CopyWork copy = WorkOf(record, channel_, record.header.reported);
  if (record.dst_device == device_.id() && record.src_device == device_.id()) return CopyBetween(stream, ticket, copy);

  const std::shared_ptr<Channel> homes[] = {HomeOf(record.dst_device), HomeOf(record.src_device)};
  std::unique_lock<std::mutex> locks[2];
  // Lock in the order of the ids, so that two channels that lock each other cannot deadlock.
  const int first = record.dst_device <= record.src_device ? 0 : 1;
  for (const int n : {first, 1 - first}) {
    CopyEnd& end = n == 0 ? copy.dst : copy.src;
    end.home = homes[n].get();
    if (end.home == nullptr || end.home == &channel_) continue;
    // Any backend copies host memory; only its own backend copies device memory.
    if (end.IsDevice() && &end.home->backend() != &device_.backend()) return Outcome::kMalformed;
    if (n == first || homes[0] != homes[1]) locks[n] = std::unique_lock(end.home->access().streams_mutex());
    if (end.home->LostStatus() != StatusCode::kOk || end.home->access().IfOpen() == nullptr) end.home = nullptr;
  }
  return CopyBetween(stream, ticket, copy);
}

std::shared_ptr<Channel> CopyRecords::HomeOf(uint32_t device) {
  return device == device_.id() ? channel_.shared_from_this() : Registry::Instance().Find(device);
}

CopyRecords::Sight CopyRecords::FindEnd(StreamState& stream, CopyEnd& end, CopyWork& copy) {
  if (end.home == nullptr) return Sight::kFound;  // The copy fails, and may poison its destination.
  uint64_t size = 0;
  if (end.IsDevice()) {
    if (end.home == &channel_) {
      if (waits_.WaitsForMemory(stream, end.handle)) return Sight::kLater;
      end.entry = tables_.memory.Find(end.handle);
    } else {
      auto seen = end.home->tables().memory.Look(end.handle, channel_.shared_from_this(), stream.index());
      if (seen.comes_later) return Sight::kLater;
      if (seen.object) end.entry = &(end.held = std::move(*seen.object));
    }
    if (end.entry == nullptr) return Sight::kMalformed;
    end.address = (*end.entry)->address;
    size = (*end.entry)->bytes;
    copy.AddMemory(end);
  } else {
    if (end.home == &channel_) {
      if (const HostEntry* found = tables_.host.Find(end.handle)) {
        end.host = *found;
      } else if (tables_.host.WaitsFor(end.handle, channel_.shared_from_this(), stream.index())) {
        return Sight::kLater;
      }
    } else {
      auto seen = end.home->tables().host.Look(end.handle, channel_.shared_from_this(), stream.index());
      if (seen.comes_later) return Sight::kLater;
      if (seen.object) end.host = std::move(*seen.object);
      // The memory is page-locked only for devices of its own backend.
      if (&end.home->backend() != &device_.backend()) end.host.is_page_locked = false;
    }
    if (end.host.state == nullptr || end.space != static_cast<uint16_t>(MemorySpace::kHost)) return Sight::kMalformed;
    end.address = end.host.bytes.data();
    size = end.host.bytes.size();
  }
  if (!Fits(end.offset, copy.bytes, size)) return Sight::kMalformed;
  if (end.address != nullptr) end.address += end.offset;
  if (!end.IsDevice() && (copy.Is(protocol::CopyFlag::kStaged) || copy.Is(protocol::CopyFlag::kPinned))) {
    end.range = {end.host.state, end.offset, copy.bytes, copy.Is(protocol::CopyFlag::kStaged)};
    copy.host_uses[copy.host_count++] = {end.range, &end == &copy.dst, copy.reported};
  }
  return Sight::kFound;
}

Outcome CopyRecords::ParkOrFail(StreamState& stream, Ticket ticket, const CopyEnd& end, const Outputs& outputs) {
  // The thread that submitted it left before it registered the memory.
  const bool is_never = stream.has_owner_left && !end.IsDevice() && end.home == &channel_;
  if (is_never) return ends_.FailGone(stream, ticket, outputs, 0);
  return waits_.ParkFor(stream, *end.home, end.IsDevice() ? ParkReason::kPoint : ParkReason::kPin);
}

Outcome CopyRecords::CopyBetween(StreamState& stream, Ticket ticket, CopyWork& copy) {
  const std::shared_ptr<BlockingCall> staging = std::exchange(stream.blocking_call, nullptr);
  for (CopyEnd* end : {&copy.dst, &copy.src}) {
    const Sight sight = FindEnd(stream, *end, copy);
    if (sight == Sight::kMalformed) return Outcome::kMalformed;
    if (sight == Sight::kLater) return ParkOrFail(stream, ticket, *end, copy.Uses());
  }
  const uint64_t bytes = copy.bytes;
  const CopyEnd& dst = copy.dst;
  const CopyEnd& src = copy.src;
  const Outputs outputs = copy.Uses();
  for (const CopyEnd* end : {&dst, &src})
    if (end->home == nullptr) return ends_.FailGone(stream, ticket, outputs, end->device);
  if (const auto failed = ends_.FailUnready(stream, ticket, copy.Cause(), outputs)) return *failed;

  const bool is_of_device = dst.entry != nullptr && src.entry != nullptr;
  const bool is_of_others = dst.home != &channel_ || src.home != &channel_;
  auto route = std::optional(PeerRoute::kDirect);
  hal::HostLeases host{.dst = dst.Lease(), .src = src.Lease()};
  if (is_of_device && is_of_others) {
    if (dst.home != src.home)
      route = dst.home->peers().routes.Find(src.home->id(), channel_.shared_from_this(), stream.index());
    if (!route) return waits_.ParkFor(stream, *dst.home, ParkReason::kPeer);
    if (*route == PeerRoute::kStaged && !stream.backend->HasStaging(bytes)) {
      if (staging == nullptr) return StageOnBlockingThread(stream, bytes);
      return ends_.FailDriver(stream, ticket, staging->status, 0, outputs);
    }
  } else if (!is_of_device) {
    const auto is_locked = [](const CopyEnd& end) { return end.entry != nullptr || end.host.is_page_locked; };
    if (device_.needs_locked_memory() && !(is_locked(dst) && is_locked(src)))
      return CopyOnBlockingThread(stream, ticket, copy);
    // The other device's owner may end while this device continues.
    if (is_of_others) host.report = faults_.Take();
    if (is_of_others && host.report == nullptr)
      return ends_.Fail(stream, ticket, {.status = FaultReports::NoSlot()}, outputs);
    host.fault_word = faults_.word();
  }
  if (const FailureId cause = Enter(stream, ticket, copy, host.report)) {
    if (host.report != nullptr) faults_.GiveBack({host.report});
    return ends_.FailUpstream(stream, ticket, cause, outputs);
  }
  const Status status = is_of_device && is_of_others
                            ? stream.backend->CopyPeer(ticket, {.dst = dst.address,
                                                                .dst_device = dst.home->access().IfOpen(),
                                                                .src = src.address,
                                                                .src_device = src.home->access().IfOpen(),
                                                                .bytes = bytes,
                                                                .route = *route})
                            : stream.backend->Copy(ticket, dst.address, src.address, bytes, host);
  if (status.code() == StatusCode::kUpstream) return ends_.FailGone(stream, ticket, outputs, 0);
  if (!status.ok()) return ends_.FailDriver(stream, ticket, status, 0, outputs);
  NoteForeignUse(stream, ticket, copy);
  return Outcome::kIssued;
}

FailureId CopyRecords::Enter(StreamState& stream, Ticket ticket, const CopyWork& copy, protocol::FaultSlot* report) {
  return faults_.Enter(stream, {.ticket = ticket,
                                .memory = copy.Memory(),
                                .host = copy.Host(),
                                .slot = report,
                                .may_fail = report != nullptr,
                                .is_foreign = copy.dst.home != &channel_ || copy.src.home != &channel_});
}

void CopyRecords::NoteForeignUse(StreamState& stream, Ticket ticket, const CopyWork& copy) {
  for (const CopyEnd* end : {&copy.dst, &copy.src}) {
    if (end->home != &channel_) end->home->peers().users.Add(channel_.weak_from_this(), stream, ticket);
  }
}

// ── Strided ────────────────────────────────────────────────────────────────────────────────────────────────────────

Outcome CopyRecords::CopyStrided(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyStridedRecord record;
  StridedAxes axes;
  if (!reader.ReadFields(record) || !IsElementSize(record.element_bytes) ||
      !ReadAxes(reader, record.rank, record.element_bytes, axes)) {
    return Outcome::kMalformed;
  }
  if (waits_.WaitsForMemory(stream, record.dst_handle) || waits_.WaitsForMemory(stream, record.src_handle))
    return waits_.Park(stream, ParkReason::kPoint);
  MemoryRef* const dst = tables_.memory.Find(record.dst_handle);
  MemoryRef* const src = tables_.memory.Find(record.src_handle);
  const uint32_t size = record.element_bytes;
  if (dst == nullptr || src == nullptr || record.dst_offset % size != 0 || record.src_offset % size != 0 ||
      !StridesFit(axes, &hal::StridedAxis::dst_stride, size, record.dst_offset, (*dst)->bytes) ||
      !StridesFit(axes, &hal::StridedAxis::src_stride, size, record.src_offset, (*src)->bytes)) {
    return Outcome::kMalformed;
  }
  const MemoryUse uses[] = {{src->get(), Use::kRead},
                            {dst->get(), CoversAll(axes, size, (*dst)->bytes) ? Use::kOverwrite : Use::kWrite}};
  const Outputs outputs{.memory = uses};
  FailureId cause = (*src)->poison.by();
  if (cause == 0 && (*dst)->address == nullptr) cause = (*dst)->poison.by();
  if (const auto failed = ends_.FailUnready(stream, ticket, cause, outputs)) return *failed;
  if (const FailureId found = faults_.Enter(stream, {.ticket = ticket, .memory = uses}))
    return ends_.FailUpstream(stream, ticket, found, outputs);
  const Status status = stream.backend->CopyStrided(ticket, (*dst)->address + record.dst_offset,
                                                    (*src)->address + record.src_offset, size, axes.span());
  return status.ok() ? Outcome::kIssued : ends_.FailDriver(stream, ticket, status, 0, outputs);
}

// ── Copies and allocations of the blocking-calls thread. The stream is parked meanwhile ────────────────────────────

Outcome CopyRecords::CopyOnBlockingThread(StreamState& stream, Ticket ticket, const CopyWork& copy) {
  if (waits_.WaitsForEnd(stream, stream, ticket - 1)) return waits_.Park(stream, ParkReason::kBlockingCall);
  progress_.Signal();  // Flush now: nothing is issued to the stream while the blocking-calls thread works for it.
  NoteForeignUse(stream, ticket, copy);
  const CopyEnd& dst = copy.dst;
  const CopyEnd& src = copy.src;
  auto record = std::make_shared<BlockingCall>();
  record->uses.assign(copy.Memory().begin(), copy.Memory().end());
  for (const MemoryUse& use : record->uses) record->held.push_back(use.entry->shared_from_this());
  record->host.assign(copy.Host().begin(), copy.Host().end());
  // A copy within host memory needs no backend.
  hal::Stream* const backend = dst.entry == nullptr && src.entry == nullptr ? nullptr : stream.backend.get();
  return waits_.RunOnBlockingThread(
      stream, ParkReason::kBlockingCall, std::move(record),
      [this, backend, to = dst.address, from = src.address, size = copy.bytes,
       host = hal::HostLeases{.dst = dst.Lease(), .src = src.Lease()}](BlockingCall& call) {
        for (uint64_t done = 0; done < size && call.status.ok();) {
          const uint64_t count = std::min(size - done, kCopyChunk);
          if (blocking_calls_.IsStopping() || inbox_.IsAbandoned()) {
            call.status = DeviceAccess::Closed();
          } else if (host.IsWithdrawn()) {
            call.status = Status(StatusCode::kUpstream, "the thread that owns the host memory ended");
          } else if (backend != nullptr) {
            call.status = backend->CopyPageable(to + done, from + done, count);
          } else {
            std::memcpy(to + done, from + done, count);
          }
          done += count;
        }
      });
}

Outcome CopyRecords::StageOnBlockingThread(StreamState& stream, uint64_t bytes) {
  auto record = std::make_shared<BlockingCall>();
  record->is_staging = true;
  progress_.Signal();  // Flush now: nothing is issued to the stream while the blocking-calls thread works for it.
  return waits_.RunOnBlockingThread(
      stream, ParkReason::kPeer, std::move(record),
      [backend = stream.backend.get(), bytes](BlockingCall& made) { made.status = backend->MakeStaging(bytes); });
}

Outcome CopyRecords::EndBlockingCopy(StreamState& stream, Ticket ticket) {
  if (!stream.blocking_call->is_done) return waits_.Park(stream, ParkReason::kBlockingCall);
  const std::shared_ptr<BlockingCall> blocking_call = std::exchange(stream.blocking_call, nullptr);
  const Outputs outputs{.memory = blocking_call->uses, .host = blocking_call->host};
  if (blocking_call->status.code() == StatusCode::kUpstream) return ends_.FailGone(stream, ticket, outputs, 0);
  if (!blocking_call->status.ok()) return ends_.FailDriver(stream, ticket, blocking_call->status, 0, outputs);
  // What it read has completed, so all reports of that are there.
  if (FaultReports::IsAnyReported()) FaultReports::Collect();
  if (const FailureId cause = faults_.Enter(stream, {.ticket = ticket, .memory = outputs.memory, .host = outputs.host}))
    return ends_.FailUpstream(stream, ticket, cause, outputs);
  return ends_.CloseTicket(stream, ticket);
}

// ── COPY_BATCH: several copies with one ticket, which fail together ────────────────────────────────────────────────

Outcome CopyRecords::CopyBatch(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyBatchRecord record;
  if (!reader.ReadFields(record) || record.count == 0 || record.count > protocol::kMaxBatchCopies)
    return Outcome::kMalformed;
  std::vector<CopyWork> works(record.count);
  for (CopyWork& copy : works) {
    protocol::BatchedCopy entry;
    if (!reader.Read(entry) || entry.dst_device != device_.id() || entry.src_device != device_.id())
      return Outcome::kMalformed;
    copy = WorkOf(entry, channel_, record.header.reported);
    for (CopyEnd* end : {&copy.dst, &copy.src}) {
      const Sight sight = FindEnd(stream, *end, copy);
      if (sight == Sight::kMalformed) return Outcome::kMalformed;
      if (sight == Sight::kLater) return ParkOrFail(stream, ticket, *end, copy.Uses());
    }
  }
  std::vector<MemoryUse> memory;
  std::vector<HostUse> host;
  std::vector<hal::BatchedCopy> copies;
  FailureId cause = 0;
  bool is_locked = true;
  for (const CopyWork& copy : works) {
    std::ranges::copy(copy.Memory(), std::back_inserter(memory));
    std::ranges::copy(copy.Host(), std::back_inserter(host));
    TakeFirst(cause, copy.Cause());
    for (const CopyEnd* end : {&copy.dst, &copy.src}) is_locked &= end->entry != nullptr || end->host.is_page_locked;
    copies.push_back(
        {copy.dst.address, copy.src.address, copy.bytes, {.dst = copy.dst.Lease(), .src = copy.src.Lease()}});
  }
  // Nothing may be overwritten, in the notes of what is poisoned, before all reads were checked.
  std::stable_partition(memory.begin(), memory.end(), [](const MemoryUse& use) { return IsUsed(use.use, Use::kRead); });
  const Outputs outputs{.memory = memory, .host = host};
  if (const auto failed = ends_.FailUnready(stream, ticket, cause, outputs)) return *failed;
  if (device_.needs_locked_memory() && !is_locked) {
    const Status status(StatusCode::kState,
                        "its host memory could not be page-locked, which a batch needs: make smaller arrays, or use "
                        "`copy`");
    return ends_.Fail(stream, ticket, {.status = status}, outputs);
  }
  if (const FailureId found = faults_.Enter(stream, {.ticket = ticket, .memory = memory, .host = host}))
    return ends_.FailUpstream(stream, ticket, found, outputs);
  const Status status = stream.backend->CopyBatch(ticket, copies);
  return status.ok() ? Outcome::kIssued : ends_.FailDriver(stream, ticket, status, 0, outputs);
}

}  // namespace millrace
