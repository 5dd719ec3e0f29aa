// The waits of streams: a stream that must wait parks, and is woken when what it waits for has happened.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/channel_parts.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class StreamWaits {
 public:
  explicit StreamWaits(const ChannelParts& parts)
      : channel_(parts.channel), tables_(parts.tables), inbox_(parts.inbox), blocking_calls_(parts.blocking_calls) {}

  Outcome Park(StreamState& stream, ParkReason reason);
  /// Parks for something that `other` will do, unless it never will.
  Outcome ParkFor(StreamState& stream, const Channel& other, ParkReason reason);
  /// What it waits for was over, or lost, just now.
  Outcome LookAgain(StreamState& stream);
  /// Gives the record to the blocking-calls thread and parks the stream until `work` is done with it.
  Outcome RunOnBlockingThread(StreamState& stream, ParkReason reason, std::shared_ptr<BlockingCall> record,
                              std::function<void(BlockingCall&)> work);

  /// True when `of` has not completed the ticket: it is then looked after, and the stream is woken when it has.
  bool WaitsForEnd(StreamState& stream, StreamState& of, Ticket ticket);
  /// True when the handle may still be allocated by a record that has not been issued; the stream is then woken when it
  /// is.
  bool WaitsForMemory(StreamState& stream, uint32_t handle);

  /// Wakes the stream when another one parks for a new reason, or at WakeAwaitingFrees (issue/pending_frees.h).
  void AwaitParkedFree(StreamState& stream);
  void WakeAwaitingFrees();

 private:
  Channel& channel_;
  ResourceTables& tables_;
  ThreadInbox& inbox_;
  BlockingCallsThread& blocking_calls_;
  std::vector<StreamState*> awaiting_frees_;  // Parked for memory; they count on a parked stream's free.
};

}  // namespace millrace
