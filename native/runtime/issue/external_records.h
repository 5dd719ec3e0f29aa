// Issues EXTERNAL records: the owner's function submits work to the driver's stream, or works on the memory itself,
// while the stream is parked.
#pragma once

#include "runtime/issue/issue_parts.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class ExternalRecords {
 public:
  explicit ExternalRecords(const IssueParts& parts)
      : channel_(parts.channel),
        device_(parts.device),
        tables_(parts.tables),
        faults_(parts.faults),
        waits_(parts.waits),
        ends_(parts.ends) {}

  /// Has the owner call the function when all earlier records were issued; where work runs on the host, when they have
  /// completed. Ends when the owner has released the record.
  Outcome External(StreamState& stream, Ticket ticket, RecordReader& reader);

 private:
  /// Parks while memory of the record does not exist yet. Adds the uses to `noted`, and the failure of what it reads.
  std::optional<Outcome> ReadUses(StreamState& stream, RecordReader& reader, InFlight& noted, FailureId& cause);

  Channel& channel_;
  DeviceAccess& device_;
  ResourceTables& tables_;
  FaultReports& faults_;
  StreamWaits& waits_;
  RecordEnds& ends_;
};

}  // namespace millrace
