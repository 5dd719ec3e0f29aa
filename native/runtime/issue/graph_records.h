// Issues the records of graphs, and ends graphs. GraphLaunch issues a launch.
#pragma once

#include "runtime/graphs.h"
#include "runtime/issue/graph_launch.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class GraphRecords {
 public:
  explicit GraphRecords(const GraphParts& parts) : parts_(parts) {}

  Outcome Launch(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome Upload(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome Free(StreamState& stream, Ticket ticket, RecordReader& reader);
  /// Destroys freed graphs whose launches have completed.
  void EndFreed();
  /// The device closes, and its blocking-calls thread and its streams have ended.
  void EndAll();

 private:
  /// Null if the handle names none, or one whose definition is malformed.
  [[nodiscard]] GraphRef Find(uint32_t handle);
  void CollectFaults(GraphEntry& graph);

  const GraphParts parts_;
  GraphScratch scratch_;
};

}  // namespace millrace
