// Graphs whose copies and fills use memory and values that each launch gives.
#include <algorithm>
#include <string>
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {
namespace {

using hal::GraphPatch;

ByteList CopyOf(const GraphRig& graphs, uint32_t dst, uint64_t dst_offset, uint32_t src, uint64_t src_offset,
                uint64_t bytes) {
  return RecordBytes(protocol::CopyRecord{.dst_handle = dst,
                                          .src_handle = src,
                                          .dst_device = graphs.id,
                                          .src_device = graphs.id,
                                          .dst_offset = dst_offset,
                                          .src_offset = src_offset,
                                          .bytes = bytes});
}

std::string Patch(uint32_t node, uint32_t param, uint64_t value) {
  return " " + std::to_string(node) + "." + std::to_string(param) + "=" + std::to_string(value);
}

/// Copies 8 bytes of memory 0 to bytes 4 to 12 of the entry.
GraphBytes Copying(const GraphRig& graphs, uint64_t offset = 4) {
  GraphBytes graph;
  graph.Node(graphs.id, CopyOf(graphs, 0, offset, Handle(0), 8, 8));
  graph.Patch(0, 0, 0);
  return graph;
}

/// Fills as many elements as entry 1 says of entry 0 with entry 2.
GraphBytes Filling(const GraphRig& graphs, uint32_t element_bytes = 4) {
  GraphBytes graph;
  graph.Node(graphs.id, RecordBytes(protocol::FillRecord{.element_bytes = element_bytes, .pattern = 9}));
  graph.Patch(0, 0, 0);
  graph.Patch(0, 2, 1);
  graph.Patch(0, 1, 2);
  return graph;
}

MR_TEST(copies_and_fills_use_the_memory_of_each_launch) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Copying(graphs));
  const auto copy = [&](uint32_t memory, uint64_t offset) {
    const Ticket ticket = LaunchGraph(rig, graphs.a, kGraph, {MemoryArg(memory, Access::kWrite, offset)});
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    return ticket;
  };
  copy(Handle(1), 0);
  const auto& copied = std::get<hal::GraphCopy>(rig.device->built.at(0).work);
  MR_EXPECT_EQ(reinterpret_cast<uintptr_t>(copied.dst), Address(rig, Handle(1)) + 4);
  MR_EXPECT_EQ(reinterpret_cast<uintptr_t>(copied.src), Address(rig, Handle(0)) + 8);
  MR_EXPECT(rig.Logs(Line("a0", copy(Handle(1), 0), "graph")));
  const std::string moved = "graph" + Patch(0, GraphPatch::kDst, Address(rig, Handle(2)) + 8);
  MR_EXPECT(rig.Logs(Line("a0", copy(Handle(2), 4), moved)));

  Define(rig, Filling(graphs), Handle(1));
  const auto fill = [&](uint32_t memory, uint64_t offset, uint64_t count, uint64_t pattern) {
    const Ticket ticket =
        LaunchGraph(rig, graphs.a, Handle(1), {MemoryArg(memory, {}, offset), ScalarArg(count), ScalarArg(pattern)});
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    return ticket;
  };
  fill(Handle(1), 4, 3, 7);
  const auto& filled = std::get<hal::GraphFill>(rig.device->built.at(0).work);
  MR_EXPECT(filled.is_patched && filled.count == 3 && filled.pattern == 7 && filled.element_bytes == 4);
  const std::string changed = "graph" + Patch(0, GraphPatch::kDst, Address(rig, Handle(2))) +
                              Patch(0, GraphPatch::kCount, 4) + Patch(0, GraphPatch::kPattern, 8);
  MR_EXPECT(rig.Logs(Line("a0", fill(Handle(2), 0, 4, 8), changed)));
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

MR_TEST(a_value_alone_may_be_given_and_both_ends_of_a_copy) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph;
  graph.Node(graphs.id, FillBytes(Handle(0), 16));
  graph.Node(graphs.id, CopyOf(graphs, 0, 0, 0, 4, 8), {0});
  graph.Patch(0, 1, 0);
  graph.Patch(1, 0, 1);
  graph.Patch(1, 1, 2);
  Define(rig, graph);
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, kGraph,
                                                {ScalarArg(5), MemoryArg(Handle(1), {}), MemoryArg(Handle(2), {})})));
  const auto& built = rig.device->built;
  MR_REQUIRE(built.size() == 2);
  MR_EXPECT_EQ(std::get<hal::GraphFill>(built[0].work).pattern, uint64_t{5});
  MR_EXPECT_EQ(reinterpret_cast<uintptr_t>(std::get<hal::GraphCopy>(built[1].work).src), Address(rig, Handle(2)) + 4);
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

MR_TEST(launches_beyond_the_memory_that_they_give_are_malformed) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Copying(graphs));
  Define(rig, Filling(graphs), Handle(1));
  const auto is_malformed = [&](uint32_t graph, const std::vector<protocol::LaunchArg>& entries) {
    const Ticket ticket = LaunchGraph(rig, graphs.a, graph, entries);
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    const auto failures = rig.Failures(graphs.a);
    return !failures.empty() && failures.back().last == ticket &&
           failures.back().status.code() == StatusCode::kInternal;
  };
  MR_EXPECT(is_malformed(kGraph, {MemoryArg(Handle(1), {}, 5)}));
  MR_EXPECT(is_malformed(kGraph, {ScalarArg(1)}));
  MR_EXPECT(!is_malformed(kGraph, {MemoryArg(Handle(1), {}, 4)}));
  const auto fill = [&](uint64_t offset, uint64_t count) {
    return is_malformed(Handle(1), {MemoryArg(Handle(1), {}, offset), ScalarArg(count), ScalarArg(1)});
  };
  MR_EXPECT(fill(0, 5) && fill(4, 4) && fill(0, 0) && fill(0, UINT64_MAX / 2));
  MR_EXPECT(!fill(0, 4) && !fill(12, 1));
}

MR_TEST(definitions_with_wrong_patches_of_copies_and_fills_are_malformed) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  std::vector<GraphBytes> wrong;
  const auto fill = [&](const std::vector<uint32_t>& args, uint64_t offset = 0) {
    GraphBytes& graph = wrong.emplace_back();
    graph.Node(graphs.id, RecordBytes(protocol::FillRecord{.element_bytes = 4, .offset = offset}));
    for (const uint32_t arg : args) graph.Patch(0, arg, 0);
  };
  fill({0});         // No count.
  fill({2});         // No memory.
  fill({3});         // No such argument.
  fill({0, 2}, 16);  // An offset in memory that is not known.
  fill({1, 1});      // Twice.
  const auto copy = [&](uint32_t arg, const ByteList& record) {
    GraphBytes& graph = wrong.emplace_back();
    graph.Node(graphs.id, record);
    graph.Patch(0, arg, 0);
  };
  copy(2, CopyOf(graphs, Handle(1), 0, Handle(0), 0, 8));
  copy(0, CopyOf(graphs, 0, 0, Handle(0), 0, 0));               // No bytes.
  copy(0, CopyOf(graphs, 0, UINT64_MAX - 3, Handle(0), 0, 8));  // Beyond all memory.
  copy(0, CopyOf(graphs, 0, 0, Handle(0), 0, 17));              // Beyond the other end.
  uint32_t handle = 0;
  for (const GraphBytes& graph : wrong) {
    Define(rig, graph, Handle(++handle));
    const Ticket ticket = LaunchGraph(rig, graphs.a, Handle(handle), {MemoryArg(Handle(1), {})});
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    const auto failures = rig.Failures(graphs.a);
    MR_EXPECT(!failures.empty() && failures.back().last == ticket);
    MR_EXPECT(failures.empty() || failures.back().status.code() == StatusCode::kInternal);
  }
}

MR_TEST(what_overwrites_the_whole_memory_clears_its_poison_and_a_part_fails) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Filling(graphs));
  const auto fill = [&](uint64_t offset, uint64_t count) {
    const size_t before = rig.Failures(graphs.a).size();
    const Ticket ticket =
        LaunchGraph(rig, graphs.a, kGraph, {MemoryArg(Handle(1), {}, offset), ScalarArg(count), ScalarArg(1)});
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    return rig.Failures(graphs.a).size() == before;
  };
  graphs.Poison(Handle(1));
  MR_EXPECT(!fill(4, 3) && graphs.IsPoisoned(Handle(1)));
  MR_EXPECT(fill(0, 4) && !graphs.IsPoisoned(Handle(1)));
  MR_EXPECT(fill(4, 3) && !graphs.IsPoisoned(Handle(1)));
  // A copy behind an offset never overwrites all.
  Define(rig, Copying(graphs), Handle(1));
  graphs.Poison(Handle(1));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, Handle(1), {MemoryArg(Handle(1), {})})));
  MR_EXPECT(graphs.IsPoisoned(Handle(1)));
  // What it reads of a launch may be poisoned.
  GraphBytes reading;
  reading.Node(graphs.id, CopyOf(graphs, Handle(2), 0, 0, 0, 16));
  reading.Patch(0, 1, 0);
  Define(rig, reading, Handle(2));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, Handle(2), {MemoryArg(Handle(1), {})})));
  MR_EXPECT(rig.Failures(graphs.a).back().status.code() == StatusCode::kUpstream);
}

MR_TEST(an_upload_leaves_the_build_to_the_first_launch) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Copying(graphs));
  MR_EXPECT(rig.Completes(graphs.a, rig.Submit(graphs.a, protocol::UploadGraphRecord{.graph = kGraph})));
  MR_EXPECT_EQ(Count(rig, "builds a graph of 1"), 0);
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, kGraph, {MemoryArg(Handle(1), {})})));
  MR_EXPECT_EQ(Count(rig, "builds a graph of 1"), 1);
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

}  // namespace
}  // namespace millrace::testing
