// Issues records: takes each apart, looks up what it names, and parks its stream or hands the work to the backend.
//
// The issuer decides about a whole record before it changes anything: the record parks unchanged, or it is accepted, or
// it fails and poisons what it would have written. A failed record still completes its ticket, in stream order.
//
// Each kind of record has one class. A new kind gets its own header and source in this folder, a member here and its
// opcodes in Dispatch. Its resources get a table in resource_tables.h.
#pragma once

#include "runtime/channel_parts.h"
#include "runtime/issue/copy_records.h"
#include "runtime/issue/device_progress.h"
#include "runtime/issue/event_records.h"
#include "runtime/issue/external_records.h"
#include "runtime/issue/graph_records.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/issue/launch_records.h"
#include "runtime/issue/memory_records.h"
#include "runtime/issue/pending_frees.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_records.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/issue/texture_records.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel, for all members.
class Issuer {
 public:
  explicit Issuer(const ChannelParts& parts);
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  /// Issues the next record of the stream, or parks the stream.
  Outcome Issue(StreamState& stream, const Record& record);
  [[nodiscard]] DeviceProgress& progress() { return progress_; }
  [[nodiscard]] GraphRecords& graphs() { return graphs_; }
  [[nodiscard]] StreamWaits& waits() { return waits_; }

 private:
  Outcome Dispatch(StreamState& stream, Ticket ticket, const Record& record);

  DeviceLoss& loss_;
  FaultReports& faults_;
  SubmissionQueue& submissions_;
  DeviceProgress progress_;
  StreamWaits waits_;
  RecordEnds ends_;
  PendingFrees frees_;
  const IssueParts parts_;

  StreamRecords streams_;
  MemoryRecords memory_;
  CopyRecords copies_;
  LaunchRecords launches_;
  ExternalRecords externals_;
  EventRecords events_;
  TextureRecords textures_;
  GraphRecords graphs_;
};

}  // namespace millrace
