// The work that a channel passes to its pump for a copy: copying pageable host memory, and allocating staging memory
// between two devices. The stream is parked meanwhile.

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/channel.h"
#include "runtime/copy_work.h"

namespace millrace {
namespace {

/// The pump checks after this many bytes whether it must stop. Copying them takes much less time than the end of an
/// environment may wait.
constexpr uint64_t kPumpChunk = 256ull << 20;

}  // namespace

Channel::Outcome Channel::PumpFor(StreamState& stream, ParkReason reason, std::shared_ptr<PumpedRecord> record,
                                  std::function<void(PumpedRecord&)> work) {
  stream.pumped = record;
  stream.is_pumping.store(true);
  // The channel outlives its pump's work.
  const Status started = pump_.Do([this, &stream, index = stream.index(), record, work = std::move(work)] {
    work(*record);
    stream.is_pumping.store(false);
    inbox_.Post([this, index, record] {
      record->is_done = true;
      WakeStream(index);
    });
  });
  if (!started.ok()) {
    // Set the status that failed work would set. The record ends when the channel next looks at its stream.
    record->status =
        Status(StatusCode::kLaunchFailed, "starting the thread that serves pageable memory", started.driver_code());
    record->is_done = true;
    stream.is_pumping.store(false);
    WakeStream(stream.index());
  }
  return Park(stream, reason);
}

Channel::Outcome Channel::CopyByPump(StreamState& stream, Ticket ticket, const CopyWork& copy) {
  if (WaitsForEnd(stream, stream, ticket - 1)) return Park(stream, ParkReason::kPump);
  SignalDirty();  // Flush now: nothing is issued to the stream while the pump works for it.
  NoteForeignUse(stream, ticket, copy);
  const auto& [bytes, flags, dst, src] = copy;
  auto record = std::make_shared<PumpedRecord>();
  if (dst.entry != nullptr) record->written = *dst.entry;
  record->is_whole = copy.IsWhole();
  record->staged = dst.staging;
  // A copy within host memory needs no backend.
  hal::Stream* const backend = dst.entry == nullptr && src.entry == nullptr ? nullptr : stream.backend.get();
  return PumpFor(stream, ParkReason::kPump, std::move(record),
                 [this, backend, to = dst.address, from = src.address, size = bytes,
                  host = hal::HostEnds{.dst = dst.Lease(), .src = src.Lease()}](PumpedRecord& pumped) {
                   for (uint64_t done = 0; done < size && pumped.status.ok();) {
                     const uint64_t count = std::min(size - done, kPumpChunk);
                     if (pump_.IsStopping() || inbox_.IsAbandoned()) {
                       pumped.status = DeviceAccess::Closed();
                     } else if (host.IsWithdrawn()) {
                       pumped.status = Status(StatusCode::kUpstream, "the thread that owns the host memory ended");
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
  SignalDirty();  // Flush now: nothing is issued to the stream while the pump works for it.
  return PumpFor(
      stream, ParkReason::kPeer, std::move(record),
      [backend = stream.backend.get(), bytes](PumpedRecord& made) { made.status = backend->MakeStaging(bytes); });
}

Channel::Outcome Channel::EndPumpedCopy(StreamState& stream, Ticket ticket) {
  if (!stream.pumped->is_done) return Park(stream, ParkReason::kPump);
  const std::shared_ptr<PumpedRecord> pumped = std::exchange(stream.pumped, nullptr);
  MemoryRef* const written[] = {&pumped->written};
  Outputs outputs{.staging = pumped->staged};
  if (pumped->written != nullptr) outputs.memory = written;
  if (pumped->status.code() == StatusCode::kUpstream) return FailGone(stream, ticket, outputs, 0);
  if (!pumped->status.ok()) return FailDriver(stream, ticket, pumped->status, 0, outputs);
  if (pumped->is_whole) pumped->written->poison.Overwrite();
  pumped->staged.Overwrite();
  CloseTicket(stream, ticket);
  return Outcome::kIssued;
}

}  // namespace millrace
