// The work that a channel passes to its pump for a copy: copying pageable host memory, and allocating staging memory
// between two devices. The stream is parked meanwhile.

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/device_access.h"
#include "runtime/issue/copy_records.h"
#include "runtime/issue/copy_work.h"
#include "runtime/issue/device_progress.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/pump.h"
#include "runtime/thread_inbox.h"

namespace millrace {
namespace {

/// The pump checks after this many bytes whether it must stop. Copying them takes much less time than the end of an
/// environment may wait.
constexpr uint64_t kPumpChunk = 256ull << 20;

}  // namespace

Outcome CopyRecords::CopyByPump(StreamState& stream, Ticket ticket, const CopyWork& copy) {
  if (waits_.WaitsForEnd(stream, stream, ticket - 1)) return waits_.Park(stream, ParkReason::kPump);
  progress_.Signal();  // Flush now: nothing is issued to the stream while the pump works for it.
  NoteForeignUse(stream, ticket, copy);
  const auto& [bytes, flags, dst, src] = copy;
  auto record = std::make_shared<PumpedRecord>();
  if (dst.entry != nullptr) record->written = *dst.entry;
  record->is_whole = copy.IsWhole();
  record->staged = dst.staging;
  // A copy within host memory needs no backend.
  hal::Stream* const backend = dst.entry == nullptr && src.entry == nullptr ? nullptr : stream.backend.get();
  return waits_.PumpFor(stream, ParkReason::kPump, std::move(record),
                        [this, backend, to = dst.address, from = src.address, size = bytes,
                         host = hal::HostEnds{.dst = dst.Lease(), .src = src.Lease()}](PumpedRecord& pumped) {
                          for (uint64_t done = 0; done < size && pumped.status.ok();) {
                            const uint64_t count = std::min(size - done, kPumpChunk);
                            if (pump_.IsStopping() || inbox_.IsAbandoned()) {
                              pumped.status = DeviceAccess::Closed();
                            } else if (host.IsWithdrawn()) {
                              pumped.status =
                                  Status(StatusCode::kUpstream, "the thread that owns the host memory ended");
                            } else if (backend != nullptr) {
                              pumped.status = backend->CopyPageable(to + done, from + done, count);
                            } else {
                              std::memcpy(to + done, from + done, count);
                            }
                            done += count;
                          }
                        });
}

Outcome CopyRecords::StageByPump(StreamState& stream, uint64_t bytes) {
  auto record = std::make_shared<PumpedRecord>();
  record->is_staging = true;
  progress_.Signal();  // Flush now: nothing is issued to the stream while the pump works for it.
  return waits_.PumpFor(
      stream, ParkReason::kPeer, std::move(record),
      [backend = stream.backend.get(), bytes](PumpedRecord& made) { made.status = backend->MakeStaging(bytes); });
}

Outcome CopyRecords::EndPumpedCopy(StreamState& stream, Ticket ticket) {
  if (!stream.pumped->is_done) return waits_.Park(stream, ParkReason::kPump);
  const std::shared_ptr<PumpedRecord> pumped = std::exchange(stream.pumped, nullptr);
  MemoryRef* const written[] = {&pumped->written};
  Outputs outputs{.staging = pumped->staged};
  if (pumped->written != nullptr) outputs.memory = written;
  if (pumped->status.code() == StatusCode::kUpstream) return ends_.FailGone(stream, ticket, outputs, 0);
  if (!pumped->status.ok()) return ends_.FailDriver(stream, ticket, pumped->status, 0, outputs);
  if (pumped->is_whole) pumped->written->poison.Overwrite();
  pumped->staged.Overwrite();
  return ends_.CloseTicket(stream, ticket);
}

}  // namespace millrace
