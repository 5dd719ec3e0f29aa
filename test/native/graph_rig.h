// A device of a recording backend with memory and a kernel, and graphs of them.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "channel_rig.h"
#include "graph_bytes.h"
#include "hal/graph.h"

namespace millrace::testing {

using protocol::Access;

constexpr uint32_t kGraph = Handle(0);
constexpr uint32_t kKernel = Handle(0);

inline void Install(Rig& rig, uint32_t kernel = kKernel, bool is_checked = false) {
  MR_EXPECT(rig.channel->InstallKernel(kernel, {.request = {}, .is_checked = is_checked}).ok());
}
inline Ticket LaunchGraph(Rig& rig, uint32_t stream, uint32_t graph = kGraph,
                          const std::vector<protocol::LaunchArg>& entries = {}) {
  ByteList bytes = RecordBytes(
      protocol::LaunchGraphRecord{.graph = graph, .arg_count = static_cast<uint32_t>(entries.size())}, entries);
  std::memcpy(bytes.data() + offsetof(protocol::RecordHeader, stream), &stream, sizeof(stream));
  return rig.channel->Submit(bytes).ticket;
}
inline Ticket FreeGraph(Rig& rig, uint32_t stream, uint32_t graph = kGraph) {
  return rig.Submit(stream, protocol::FreeGraphRecord{.graph = graph});
}
inline void Define(Rig& rig, const GraphBytes& graph, uint32_t handle = kGraph) {
  rig.channel->DefineGraph(handle, graph.Bytes(), 0);
}
inline std::string Line(const char* stream, Ticket ticket, const std::string& what) {
  return std::string(stream) + " " + std::to_string(ticket) + " " + what;
}
inline int Count(Rig& rig, const std::string& line) {
  int count = 0;
  for (const std::string& each : rig.log->Lines()) count += each == line ? 1 : 0;
  return count;
}
inline uint64_t Address(Rig& rig, uint32_t memory) {
  return rig.channel->MemoryAddress(memory).value_or(0);
}

/// A stream, 16 bytes of memory under each of the handles 0 to 2, and a kernel.
struct GraphRig {
  explicit GraphRig(RecordingBackend& backend, uint32_t ordinal = 0, bool is_checked = false)
      : rig(backend, ordinal), id(rig.channel->id()), a(rig.Stream()), controls(&backend.controls) {
    for (uint32_t n = 0; n < 3; ++n) rig.Alloc(a, Handle(n), 16);
    Install(rig, kKernel, is_checked);
    MR_EXPECT(rig.Completes(a, 4));
  }
  /// Reads memory 0 and writes memory 1.
  [[nodiscard]] GraphBytes Reading() const {
    GraphBytes graph;
    graph.Node(id, LaunchBytes(kKernel, {MemoryArg(Handle(0), Access::kRead), MemoryArg(Handle(1), Access::kWrite)}));
    return graph;
  }
  /// One kernel with this argument of each launch.
  [[nodiscard]] GraphBytes WithEntry(protocol::LaunchArg arg) const {
    GraphBytes graph;
    graph.Node(id, LaunchBytes(kKernel, {arg}));
    graph.Patch(0, 0, 0);
    return graph;
  }
  /// A failed fill poisons the memory.
  Failure Poison(uint32_t memory) {
    controls->refuse_fills = 1;
    MR_EXPECT(rig.Completes(a, rig.Fill(a, memory, 16)));
    return rig.Failures(a).back();
  }
  /// Says whether a copy from the memory fails.
  bool IsPoisoned(uint32_t memory) {
    const Ticket copied = rig.Copy(a, Handle(2), memory, 16);
    MR_EXPECT(rig.Completes(a, copied));
    const auto failures = rig.Failures(a);
    MR_EXPECT(rig.Completes(a, rig.Fill(a, Handle(2), 16)));
    return !failures.empty() && failures.back().last == copied;
  }

  Rig rig;
  uint32_t id;
  uint32_t a;
  BackendControls* controls;
};

}  // namespace millrace::testing
