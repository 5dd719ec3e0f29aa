#include "runtime/issue/stream_waits.h"

#include <algorithm>
#include <utility>

#include "runtime/channel.h"

namespace millrace {

Outcome StreamWaits::Park(StreamState& stream, ParkReason reason) {
  const bool is_new = stream.park.exchange(reason, std::memory_order_relaxed) != reason;
  if (is_new && !awaiting_frees_.empty()) WakeAwaitingFrees();
  return Outcome::kParked;
}

Outcome StreamWaits::ParkFor(StreamState& stream, const Channel& other, ParkReason reason) {
  // It may have been lost, and have woken all who waited, just before this stream was among them.
  if (other.LostStatus() != StatusCode::kOk) inbox_.Wake(stream);
  return Park(stream, reason);
}

Outcome StreamWaits::LookAgain(StreamState& stream) {
  inbox_.Wake(stream);
  return Park(stream, ParkReason::kPoint);
}

Outcome StreamWaits::RunOnBlockingThread(StreamState& stream, ParkReason reason, std::shared_ptr<BlockingCall> record,
                                         std::function<void(BlockingCall&)> work) {
  stream.blocking_call = record;
  stream.has_blocking_call.store(true);
  // The channel outlives its blocking-calls thread's work.
  const Status started = blocking_calls_.Do([&inbox = inbox_, &stream, record, work = std::move(work)] {
    work(*record);
    stream.has_blocking_call.store(false);
    inbox.Post([&inbox, &stream, record] {
      record->is_done = true;
      inbox.Wake(stream);
    });
  });
  if (!started.ok()) {
    // Set the status that failed work would set. The record ends when the channel next looks at its stream.
    record->status =
        Status(StatusCode::kLaunchFailed, "starting the thread that serves pageable memory", started.driver_code());
    record->is_done = true;
    stream.has_blocking_call.store(false);
    inbox_.Wake(stream);
  }
  return Park(stream, reason);
}

bool StreamWaits::WaitsForEnd(StreamState& stream, StreamState& of, Ticket ticket) {
  if (of.Completed() >= ticket || !of.AddWaiter(ticket, true, channel_.shared_from_this(), stream.index()))
    return false;
  return true;
}

bool StreamWaits::WaitsForMemory(StreamState& stream, uint32_t handle) {
  return tables_.memory.Find(handle) == nullptr &&
         tables_.memory.WaitsFor(handle, channel_.shared_from_this(), stream.index());
}

void StreamWaits::AwaitParkedFree(StreamState& stream) {
  if (std::find(awaiting_frees_.begin(), awaiting_frees_.end(), &stream) == awaiting_frees_.end())
    awaiting_frees_.push_back(&stream);
}

void StreamWaits::WakeAwaitingFrees() {
  for (StreamState* const stream : awaiting_frees_) inbox_.Wake(*stream);
  awaiting_frees_.clear();
}

}  // namespace millrace
