// The frees for which an allocation without room waits: those that were issued and have not completed, and those that
// were submitted and not issued because their stream is parked.
//
// A parked stream may itself wait for the allocation. Then its free never comes, and the allocation fails. The waits
// between streams change as streams advance, so an allocation that waits for a parked free checks them again whenever a
// stream of the channel parks for a new reason and whenever a free is issued.
#pragma once

#include <utility>
#include <vector>

#include "runtime/channel_parts.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class PendingFrees {
 public:
  PendingFrees(const ChannelParts& parts, StreamWaits& waits)
      : device_(parts.device), streams_(parts.streams), inbox_(parts.inbox), waits_(waits) {}

  /// True when memory may yet come back from frees that are under way; the stream is then woken.
  bool WaitsFor(StreamState& stream);
  /// The stream is about to issue a FREE record.
  void Note(StreamState& stream, Ticket ticket);

 private:
  bool GoesOnWithout(const StreamState& allocating, StreamState& parked);
  void ForgetEnded();

  DeviceAccess& device_;
  StreamTable& streams_;
  ThreadInbox& inbox_;
  StreamWaits& waits_;
  std::vector<std::pair<StreamState*, Ticket>> issued_;  // Not known to have completed.
};

}  // namespace millrace
