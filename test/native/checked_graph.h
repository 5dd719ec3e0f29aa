// A graph of checked kernels on a recording device, and what its kernels do that leave an array.
#pragma once

#include <atomic>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {

inline protocol::FaultSlot* SlotAt(uint64_t address) {
  return reinterpret_cast<protocol::FaultSlot*>(address);
}

/// What the patches up to this launch have made of a parameter that was built with `value`.
inline uint64_t PatchedParam(Rig& rig, const std::string& launch, const std::string& param, uint64_t value) {
  for (const std::string& line : rig.log->Lines()) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.starts_with(param + "=")) value = std::stoull(word.substr(param.size() + 1));
    }
    if (line.starts_with(launch + " graph")) return value;
  }
  MR_CHECK(false);
}

/// A checked kernel that reads memory 0 and writes memory 1, and one without parameters, built by a first launch.
struct CheckedGraph {
  explicit CheckedGraph(RecordingBackend& backend) : graphs(backend, 0, true), rig(graphs.rig), a(graphs.a) {
    GraphBytes graph = graphs.Reading();
    graph.Node(graphs.id, FillBytes(Handle(2), 16));
    graph.Node(graphs.id, LaunchBytes(kKernel, {}));
    Define(rig, graph);
    MR_EXPECT(rig.Completes(a, LaunchGraph(rig, a)));
  }
  /// The hidden parameters of a node: the last two.
  [[nodiscard]] uint64_t Hidden(uint32_t node, uint32_t which) const {
    const auto& params = std::get<hal::GraphKernel>(rig.device->built[node].work).params;
    return params[params.size() - 2 + which];
  }
  [[nodiscard]] protocol::FaultSlot* Slot(uint32_t node) const {
    return reinterpret_cast<protocol::FaultSlot*>(Hidden(node, 0));
  }
  /// The slot that a launch on stream `a` gives the node.
  [[nodiscard]] protocol::FaultSlot* SlotOf(Ticket launch, uint32_t node) const {
    const std::string param = node == 0 ? "0.2" : "2.0";
    return SlotAt(PatchedParam(rig, "a0 " + std::to_string(launch), param, Hidden(node, 0)));
  }
  /// What a kernel does that leaves an array.
  void ReportAt(protocol::FaultSlot* slot, int64_t index = 77) {
    slot->index = index;
    std::atomic_ref(slot->state).store(hal::kFaultWritten);
    std::atomic_ref(rig.FaultWord()).store(1);
  }
  void Report(uint32_t node) { ReportAt(Slot(node)); }
  /// Launches on stream `a` that do not complete.
  std::vector<Ticket> Queue(int count) {
    graphs.controls->completes_at_once = false;
    std::vector<Ticket> launched;
    for (int n = 0; n < count; ++n) launched.push_back(LaunchGraph(rig, a));
    MR_EXPECT(IsIssued(a, launched.back()));
    return launched;
  }
  void CompleteAll(Ticket last) {
    graphs.controls->completes_at_once = true;
    rig.Backend(0).Complete(last);
  }
  [[nodiscard]] bool IsIssued(uint32_t stream, Ticket ticket) const {
    return Eventually([&] { return rig.channel->FindStream(stream)->Issued() >= ticket; });
  }

  GraphRig graphs;
  Rig& rig;
  uint32_t a;
};

}  // namespace millrace::testing
