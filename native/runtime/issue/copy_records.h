// Issues copies: within a device, between two, to and from host memory, and by axes.
//
// A copy may name memory of other devices. The lookup in their channels' tables takes a lock. If the memory is not
// there yet, the stream waits as it does for memory of its own device. The other devices do not close while the copy is
// issued, and free their memory only when it has completed. Host memory of another device may be freed earlier, when
// that device's owner ends; the copy then reports a fault.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/issue/issue_parts.h"
#include "runtime/issue/outputs.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

struct CopyEnd;
struct CopyWork;

/// Thread: channel. While a copy that names other devices is issued, it holds the streams_mutex() of each, in the order
/// of the channels' ids.
class CopyRecords {
 public:
  explicit CopyRecords(const IssueParts& parts)
      : channel_(parts.channel),
        device_(parts.device),
        tables_(parts.tables),
        inbox_(parts.inbox),
        faults_(parts.faults),
        blocking_calls_(parts.blocking_calls),
        progress_(parts.progress),
        waits_(parts.waits),
        ends_(parts.ends) {}

  Outcome Copy(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome CopyBatch(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome CopyStrided(StreamState& stream, Ticket ticket, RecordReader& reader);

  // Graphs find the ends of their copies in the same way.
  enum class Sight : uint8_t { kFound, kLater, kMalformed };

  /// The channel with this id; null when it is not open any more.
  std::shared_ptr<Channel> HomeOf(uint32_t device);
  /// Looks for one end of a copy in the tables of its device, which does not close meanwhile.
  Sight FindEnd(StreamState& stream, CopyEnd& end, CopyWork& copy);

 private:
  /// The memory of an end comes later.
  Outcome ParkOrFail(StreamState& stream, Ticket ticket, const CopyEnd& end, const Outputs& outputs);
  Outcome CopyBetween(StreamState& stream, Ticket ticket, CopyWork& copy);
  /// As FaultReports::Enter.
  FailureId Enter(StreamState& stream, Ticket ticket, const CopyWork& copy, protocol::FaultSlot* report);
  void NoteForeignUse(StreamState& stream, Ticket ticket, const CopyWork& copy);

  /// Host memory that is not page-locked: the blocking-calls thread copies it once the stream has run what came before.
  Outcome CopyOnBlockingThread(StreamState& stream, Ticket ticket, const CopyWork& copy);
  Outcome EndBlockingCopy(StreamState& stream, Ticket ticket);
  Outcome StageOnBlockingThread(StreamState& stream, uint64_t bytes);

  Channel& channel_;
  DeviceAccess& device_;
  ResourceTables& tables_;
  ThreadInbox& inbox_;
  FaultReports& faults_;
  BlockingCallsThread& blocking_calls_;
  DeviceProgress& progress_;
  StreamWaits& waits_;
  RecordEnds& ends_;
};

}  // namespace millrace
