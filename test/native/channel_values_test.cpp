// Parameters by value: the bytes behind the entries of a launch, and pointers in them.
#include "graph_rig.h"

namespace millrace::testing {
namespace {

using protocol::ArgKind;

protocol::LaunchArg BytesArg(uint16_t size, uint64_t place) {
  return {.kind = static_cast<uint8_t>(ArgKind::kBytes), .size = size, .value = place};
}
protocol::LaunchArg MemberArg(uint32_t handle, uint16_t place, uint64_t offset, Access access) {
  return {.kind = static_cast<uint8_t>(ArgKind::kMember),
          .access = static_cast<uint8_t>(access),
          .size = place,
          .handle = handle,
          .value = offset};
}

/// A launch with these words behind its entries.
ByteList With(const std::vector<protocol::LaunchArg>& args, const std::vector<uint64_t>& words) {
  ByteList bytes = LaunchBytes(kKernel, args);
  for (const uint64_t word : words) Append(bytes, word);
  const auto size = static_cast<uint32_t>(bytes.size());
  std::memcpy(bytes.data() + offsetof(protocol::RecordHeader, size), &size, sizeof(size));
  return bytes;
}

Ticket Launch(Rig& rig, uint32_t stream, ByteList bytes) {
  std::memcpy(bytes.data() + offsetof(protocol::RecordHeader, stream), &stream, sizeof(stream));
  return rig.channel->Submit(bytes).ticket;
}

/// A struct with two pointers, the first of which is null, and one of 12 bytes.
std::vector<protocol::LaunchArg> TwoStructs() {
  return {ScalarArg(7), BytesArg(24, 0), MemberArg(Handle(1), 16, 4, Access::kRead), BytesArg(12, 24)};
}

MR_TEST(values_reach_the_backend_with_the_addresses_of_their_pointers) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const Ticket launched = Launch(rig, graphs.a, With(TwoStructs(), {11, 0, 0, 13, 14}));
  MR_EXPECT(rig.Completes(graphs.a, launched));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  const auto& values = rig.device->streams[0]->Values();
  MR_REQUIRE(values.size() == 2);
  MR_EXPECT(values[0] == (std::vector<uint64_t>{11, 0, Address(rig, Handle(1)) + 4}));
  MR_EXPECT(values[1] == (std::vector<uint64_t>{13, 14}));
}

MR_TEST(a_pointer_in_a_struct_is_an_input_or_an_output) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const Failure poisoned = graphs.Poison(Handle(0));
  const auto launch = [&](Access access) {
    const Ticket ticket = Launch(rig, graphs.a, With({BytesArg(8, 0), MemberArg(Handle(0), 0, 0, access)}, {0}));
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    return ticket;
  };
  const Ticket reading = launch(Access::kRead);
  MR_REQUIRE(!rig.Failures(graphs.a).empty());
  MR_EXPECT_EQ(rig.Failures(graphs.a).back().last, reading);
  MR_EXPECT_EQ(rig.Failures(graphs.a).back().cause, poisoned.id);
  launch(Access::kWrite);
  MR_EXPECT(!graphs.IsPoisoned(Handle(0)));
}

MR_TEST(graphs_have_the_values_of_their_launches_and_patch_pointers_in_them) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph;
  graph.Node(graphs.id, With(TwoStructs(), {11, 12, 0, 13, 14}));
  graph.Patch(0, 2, 0);
  Define(rig, graph);
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, kGraph, {MemoryArg(Handle(2), Access::kRead, 8)})));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  MR_REQUIRE(rig.device->built.size() == 1);
  const auto& kernel = std::get<hal::GraphKernel>(rig.device->built[0].work);
  MR_EXPECT(kernel.params == (std::vector<uint64_t>{7, 11, 12, Address(rig, Handle(2)) + 8, 13, 14}));
  MR_REQUIRE(kernel.wide.size() == 2);
  MR_EXPECT(kernel.wide[0].index == 1 && kernel.wide[0].bytes == 24);
  MR_EXPECT(kernel.wide[1].index == 2 && kernel.wide[1].bytes == 12);
  const std::vector<void*> pointers = hal::ParamPointers(kernel.params, kernel.wide);
  MR_EXPECT(pointers.size() == 3 && *static_cast<uint64_t*>(pointers[2]) == 13);
}

MR_TEST(malformed_values_fail_their_launches) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const auto member = [](uint16_t place) { return MemberArg(Handle(0), place, 0, Access::kRead); };
  const std::vector<ByteList> wrong{
      With({BytesArg(0, 0)}, {0}),
      With({BytesArg(9, 0)}, {0}),
      With({BytesArg(8, 4)}, {0, 0}),
      With({BytesArg(8, 16)}, {0, 0}),
      With({BytesArg(8, UINT64_MAX - 7)}, {0, 0}),
      With({member(0)}, {0}),
      With({BytesArg(16, 0), member(4)}, {0, 0}),
      With({BytesArg(12, 0), member(8)}, {0, 0}),
      With({BytesArg(16, 0), member(16)}, {0, 0, 0}),
  };
  for (const ByteList& bytes : wrong) {
    const Ticket launched = Launch(rig, graphs.a, bytes);
    MR_EXPECT(rig.Completes(graphs.a, launched));
    MR_REQUIRE(!rig.Failures(graphs.a).empty());
    MR_EXPECT_EQ(rig.Failures(graphs.a).back().last, launched);
    MR_EXPECT(rig.Failures(graphs.a).back().status.code() == StatusCode::kInternal);
  }
  const auto is_malformed = [&](const GraphBytes& graph) {
    Define(rig, graph);
    const Ticket launched = LaunchGraph(rig, graphs.a);
    MR_EXPECT(rig.Completes(graphs.a, launched));
    const bool has_failed = rig.Failures(graphs.a).back().last == launched;
    MR_EXPECT(rig.Completes(graphs.a, FreeGraph(rig, graphs.a)));
    return has_failed;
  };
  for (const ByteList& bytes : wrong) {
    GraphBytes graph;
    graph.Node(graphs.id, bytes);
    MR_EXPECT(is_malformed(graph));
  }
  GraphBytes whole;
  whole.Node(graphs.id, With({BytesArg(8, 0)}, {0}));
  MR_EXPECT(!is_malformed(whole));
  whole.Patch(0, 0, 0);  // No entry has a struct.
  MR_EXPECT(is_malformed(whole));
}

}  // namespace
}  // namespace millrace::testing
