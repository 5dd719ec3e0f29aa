// The part of a copy that a channel passes to its blocking-calls thread: copying pageable host memory, or allocating
// staging memory between two devices. The stream is parked meanwhile.

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/blocking_calls_thread.h"
#include "runtime/device_access.h"
#include "runtime/fault_reports.h"
#include "runtime/issue/copy_records.h"
#include "runtime/issue/copy_work.h"
#include "runtime/issue/device_progress.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/thread_inbox.h"

namespace millrace {
namespace {

/// The blocking-calls thread checks after this many bytes whether it must stop. Copying them takes much less time than
/// the end of an environment may wait.
constexpr uint64_t kCopyChunk = 256ull << 20;

}  // namespace

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
  if (const uint32_t cause = faults_.Enter(stream, {.ticket = ticket, .memory = outputs.memory, .host = outputs.host}))
    return ends_.FailUpstream(stream, ticket, cause, outputs);
  return ends_.CloseTicket(stream, ticket);
}

}  // namespace millrace
