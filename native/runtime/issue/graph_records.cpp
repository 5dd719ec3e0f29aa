#include "runtime/issue/graph_records.h"

#include <algorithm>
#include <utility>

#include "runtime/channel.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"

namespace millrace {

GraphRef GraphRecords::Find(uint32_t handle) {
  const Graphs& graphs = parts_.tables.graphs;
  const auto found = graphs.by_handle.find(handle);
  return found == graphs.by_handle.end() || !found->second->Read() ? nullptr : found->second;
}

Outcome GraphRecords::Launch(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::LaunchGraphRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  const GraphRef graph = Find(record.graph);
  if (graph == nullptr || record.arg_count != graph->definition->entry_count) return Outcome::kMalformed;
  std::vector<protocol::LaunchArg> entries(record.arg_count);
  for (protocol::LaunchArg& entry : entries) {
    if (!reader.Read(entry)) return Outcome::kMalformed;
  }
  return GraphLaunch(parts_, scratch_, stream, ticket, record.header, *graph, std::move(entries)).Issue(graph);
}

Outcome GraphRecords::Upload(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::UploadGraphRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  const GraphRef graph = Find(record.graph);
  if (graph == nullptr) return Outcome::kMalformed;
  return GraphLaunch(parts_, scratch_, stream, ticket, record.header, *graph, std::nullopt).Issue(graph);
}

Outcome GraphRecords::Free(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::FreeGraphRecord record;
  if (!reader.ReadFields(record)) return Outcome::kMalformed;
  Graphs& graphs = parts_.tables.graphs;
  if (auto node = graphs.by_handle.extract(record.graph)) {
    graphs.ending.emplace_back(std::move(node.mapped()), &stream);
    parts_.tables.owned.RemoveGraph(stream.owner_id, record.graph);
  }
  parts_.ends.CloseTicket(stream, ticket);
  EndFreed();
  return Outcome::kIssued;
}

void GraphRecords::EndFreed() {
  std::erase_if(parts_.tables.graphs.ending, [&](const auto& freed) {
    const auto& [graph, stream] = freed;
    if (graph->build == GraphEntry::Build::kRunning) return false;
    for (const auto& [launching, last] : graph->launches) {
      // This channel wakes then, and comes here.
      if (parts_.waits.WaitsForEnd(*stream, *launching, last)) return false;
    }
    CollectFaults(*graph);
    // What it held on the device may take long to give back.
    if (graph->built->Get() != nullptr && !parts_.blocking_calls.Do([built = graph->built] { built->End(); }).ok())
      graph->built->End();
    return true;
  });
}

void GraphRecords::CollectFaults(GraphEntry& graph) {
  if (graph.faults == nullptr) return;
  if (FaultReports::IsAnyReported()) FaultReports::Collect();
  parts_.faults.GiveBack(graph.faults->End());
}

void GraphRecords::EndAll() {
  Graphs& tabled = parts_.tables.graphs;
  std::vector<GraphRef> graphs;
  for (auto& [handle, graph] : std::exchange(tabled.by_handle, {})) graphs.push_back(std::move(graph));
  for (auto& [graph, stream] : std::exchange(tabled.ending, {})) graphs.push_back(std::move(graph));
  for (const GraphRef& graph : graphs) {
    CollectFaults(*graph);
    graph->built->End();
  }
}

}  // namespace millrace
