// Definitions come from JavaScript as bytes: wrong ones make launches fail and nothing else.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {
namespace {

void LaunchFails(GraphRig& graphs, const ByteList& definition, uint32_t handle) {
  graphs.rig.channel->DefineGraph(handle, definition, 0);
  // As many entries as the definition says, so that they are not the reason.
  protocol::GraphDefinition head{};
  if (definition.size() >= sizeof(head)) std::memcpy(&head, definition.data(), sizeof(head));
  const std::vector<protocol::LaunchArg> entries(head.entry_count, MemoryArg(Handle(0), Access::kRead));
  const Ticket first = LaunchGraph(graphs.rig, graphs.a, handle, entries);
  const Ticket second = LaunchGraph(graphs.rig, graphs.a, handle, entries);
  MR_EXPECT(graphs.rig.Completes(graphs.a, second));
  const auto failures = graphs.rig.Failures(graphs.a);
  MR_REQUIRE(!failures.empty());
  MR_EXPECT(failures.back().status.code() == StatusCode::kInternal && failures.back().last == second);
  MR_EXPECT(failures.back().first <= first);
  MR_EXPECT(graphs.rig.Completes(graphs.a, FreeGraph(graphs.rig, graphs.a, handle)));
}

template <typename Record, typename Change>
ByteList With(GraphRig& graphs, Record record, Change change) {
  GraphBytes graph;
  change(record);
  graph.Node(graphs.id, RecordBytes(record));
  return graph.Bytes();
}

MR_TEST(malformed_definitions_fail_their_launches) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  const uint32_t id = graphs.id;
  std::array<std::byte, 16> host{};
  MR_EXPECT(graphs.rig.channel->RegisterHost(Handle(0), host, true).ok());
  const ByteList launch = LaunchBytes(kKernel, {MemoryArg(Handle(0), Access::kRead), ScalarArg(1)});
  std::vector<ByteList> wrong;
  const auto add = [&](auto make) {
    GraphBytes graph;
    make(graph);
    wrong.push_back(graph.Bytes());
  };
  wrong.push_back({});
  wrong.push_back(ByteList(15));
  add([&](GraphBytes& graph) { graph.Node(id, launch, {0}); });  // It comes after itself.
  add([&](GraphBytes& graph) { graph.Node(id, RecordBytes(protocol::WaitRecord{})); });
  add([&](GraphBytes& graph) { graph.Node(id, ByteList(8)); });
  add([&](GraphBytes& graph) { graph.Node(id, ByteList(launch.begin(), launch.end() - 16)); });
  add([&](GraphBytes& graph) { graph.Node(id, LaunchBytes(kKernel, {}, 0)); });  // No threads.
  add([&](GraphBytes& graph) { graph.Node(id + 1000, FillBytes(Handle(0), 17)); });
  add([&](GraphBytes& graph) { graph.Node(id, FillBytes(Handle(0), 17)); });
  add([&](GraphBytes& graph) { graph.Node(id, FillBytes(0, 1)); });
  add([&](GraphBytes& graph) { graph.Node(id, LaunchBytes(0, {})); });
  add([&](GraphBytes& graph) { graph.Node(id, LaunchBytes(kKernel, {MemoryArg(Handle(0), Access::kRead, 17)})); });
  const auto patched = [&](uint32_t node, uint32_t arg, int times) {
    add([&](GraphBytes& graph) {
      graph.Node(id, launch);
      graph.Node(id, FillBytes(Handle(0), 16));
      for (int n = 0; n < times; ++n) graph.Patch(node, arg, 0);
    });
  };
  patched(2, 0, 1);
  patched(1, 0, 1);  // The memory of a fill without its count.
  patched(0, 2, 1);
  patched(0, 1, 2);
  add([&](GraphBytes& graph) {
    protocol::LaunchArg variable = MemoryArg(Handle(0), Access::kRead);
    variable.kind = static_cast<uint8_t>(protocol::ArgKind::kVariable);
    graph.Node(id, LaunchBytes(kKernel, {variable}));
    graph.Patch(0, 0, 0);
  });
  using protocol::CopyRecord;
  const CopyRecord copy{
      .dst_handle = Handle(0), .src_handle = Handle(1), .dst_device = id, .src_device = id, .bytes = 16};
  wrong.push_back(With(graphs, copy, [](CopyRecord& record) { record.src_offset = 1; }));
  wrong.push_back(With(graphs, copy, [](CopyRecord& record) { record.dst_space = 9; }));
  wrong.push_back(With(graphs, copy, [](CopyRecord& record) { record.flags = 1; }));
  // One byte too many, and one too few.
  ByteList whole = graphs.Reading().Bytes();
  whole.push_back(std::byte{0});
  wrong.push_back(whole);
  whole.resize(whole.size() - 2);
  wrong.push_back(whole);
  for (size_t n = 0; n < wrong.size(); ++n) {
    // A device that is not there is lost, which is no matter of form.
    if (n != 7) LaunchFails(graphs, wrong[n], Handle(static_cast<uint32_t>(n)));
  }
  graphs.rig.channel->DefineGraph(Handle(100), wrong[7], 0);
  MR_EXPECT(graphs.rig.Completes(graphs.a, LaunchGraph(graphs.rig, graphs.a, Handle(100))));
  const Failure gone = graphs.rig.Failures(graphs.a).back();
  MR_EXPECT(gone.status.code() == StatusCode::kDeviceLost && gone.lost_device == id + 1000);
}

MR_TEST(a_graph_without_nodes_completes_and_needs_no_backend) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Define(graphs.rig, GraphBytes());
  MR_EXPECT(graphs.rig.Completes(graphs.a, LaunchGraph(graphs.rig, graphs.a)));
  MR_EXPECT(graphs.rig.Failures(graphs.a).empty());
  MR_EXPECT_EQ(Count(graphs.rig, "builds a graph of 0"), 0);
}

MR_TEST(a_handle_names_its_first_definition_until_it_is_freed) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Define(graphs.rig, graphs.Reading());
  Define(graphs.rig, GraphBytes());
  MR_EXPECT(graphs.rig.Completes(graphs.a, LaunchGraph(graphs.rig, graphs.a)));
  MR_EXPECT_EQ(Count(graphs.rig, "builds a graph of 1"), 1);
}

/// A mutated handle may name what never comes: its stream stays parked, and the device is given up in the end.
void MutateDefinitions(uint32_t seed, uint32_t times) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  std::array<std::byte, 16> host{};
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, true).ok());
  GraphBytes graph;
  const uint32_t id = graphs.id;
  graph.Node(id,
             LaunchBytes(kKernel, {ScalarArg(0), MemoryArg(0, Access::kRead), MemoryArg(Handle(1), Access::kWrite)}));
  graph.Node(id, FillBytes(Handle(2), 8, 8), {0});
  graph.Node(id,
             RecordBytes(protocol::CopyRecord{.dst_handle = Handle(0),
                                              .src_handle = Handle(0),
                                              .src_space = static_cast<uint16_t>(MemorySpace::kHost),
                                              .dst_device = id,
                                              .src_device = id,
                                              .bytes = 16}),
             {0, 1});
  const std::vector<protocol::StridedAxis> axes{{.extent = 2, .dst_stride = 8, .src_stride = 4}};
  const protocol::CopyStridedRecord strided{
      .dst_handle = Handle(0), .src_handle = Handle(1), .element_bytes = 4, .rank = 1};
  graph.Node(id, RecordBytes(strided, axes), {2});
  graph.Node(id, RecordBytes(protocol::FillStridedRecord{.handle = Handle(0), .element_bytes = 4, .rank = 1}, axes));
  graph.Patch(0, 0, 0);
  graph.Patch(0, 1, 1);
  const ByteList whole = graph.Bytes();
  std::mt19937 random(seed);
  const auto below = [&](size_t most) { return std::uniform_int_distribution<size_t>(0, most - 1)(random); };
  std::vector<std::pair<uint32_t, Ticket>> launches;
  for (uint32_t n = 0; n < times; ++n) {
    ByteList bytes = whole;
    const size_t changes = 1 + below(3);
    for (size_t change = 0; change < changes; ++change) {
      std::byte& changed = bytes[below(bytes.size())];
      changed = below(2) == 0 ? static_cast<std::byte>(below(256)) : changed ^ static_cast<std::byte>(1 << below(8));
    }
    if (below(8) == 0) bytes.resize(below(bytes.size() + 1));
    const uint32_t stream = rig.Stream();
    // Launches that failed have poisoned it.
    for (uint32_t memory = 0; memory < 3; ++memory) rig.Fill(graphs.a, Handle(memory), 16);
    rig.channel->DefineGraph(Handle(n), bytes, 0);
    const std::vector<protocol::LaunchArg> entries{ScalarArg(1), MemoryArg(Handle(0), Access::kRead)};
    LaunchGraph(rig, stream, Handle(n), entries);
    launches.emplace_back(stream, LaunchGraph(rig, stream, Handle(n), entries));
    if (below(2) == 0) FreeGraph(rig, stream, Handle(n));
  }
  const auto has_ended = [&](const auto& launch) {
    return rig.Completed(launch.first) >= launch.second ||
           rig.channel->FindStream(launch.first)->park.load() != ParkReason::kNone;
  };
  MR_EXPECT(Eventually([&] { return std::all_of(launches.begin(), launches.end(), has_ended); }));
  // The device still works.
  rig.Fill(graphs.a, Handle(0), 16);
  Define(rig, graphs.Reading(), Handle(times));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, Handle(times))));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  MR_EXPECT(Count(rig, "builds a graph of 5") > static_cast<int>(times / 100));
  rig.channel->Abandon(std::chrono::seconds(5));
}

MR_TEST(no_mutation_of_a_definition_does_harm) {
  for (const uint32_t seed : {7u, 8u, 9u, 10u}) MutateDefinitions(seed, 1000);
}

// The channel may find the record before it has looked for the definition, which was handed over earlier.
MR_TEST(a_definition_that_was_handed_over_is_there_when_its_launch_is_read) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph;
  graph.Node(graphs.id, RecordBytes(protocol::NopRecord{}));
  constexpr uint32_t kTimes = 20'000;
  Ticket last = 0;
  for (uint32_t n = 1; n <= kTimes; ++n) {
    Define(rig, graph, Handle(n));
    LaunchGraph(rig, graphs.a, Handle(n));
    last = FreeGraph(rig, graphs.a, Handle(n));
    // The channel goes idle at times, and at times it is behind.
    if (n % 7 == 0) MR_EXPECT(rig.Completes(graphs.a, last));
  }
  MR_EXPECT(rig.Completes(graphs.a, last));
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

}  // namespace
}  // namespace millrace::testing
