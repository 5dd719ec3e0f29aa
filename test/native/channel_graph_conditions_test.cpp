// Conditions in definitions, and the fault reports of kernels in bodies: these have one slot for all launches, so the
// launches of such a graph are given to the backend one after another.
#include <cstdint>
#include <utility>
#include <vector>

#include "checked_graph.h"

namespace millrace::testing {
namespace {

using Kind = hal::GraphCondition::Kind;

protocol::GraphCondition Head(Kind kind, uint32_t memory = 0, uint64_t offset = 0) {
  return {.kind = static_cast<uint32_t>(kind), .handle = Handle(memory), .offset = offset};
}

GraphBytes BodyOf(uint32_t id, const ByteList& record) {
  GraphBytes body;
  body.Node(id, record);
  return body;
}

/// A loop over memory 0 with a checked kernel that writes memory 1.
GraphBytes Loop(uint32_t id) {
  GraphBytes graph;
  graph.Condition(id, Head(Kind::kWhile, 0, 8),
                  {BodyOf(id, LaunchBytes(kKernel, {MemoryArg(Handle(1), Access::kWrite)}))});
  return graph;
}

MR_TEST(conditions_are_built_with_their_bodies) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const uint32_t id = graphs.id;
  GraphBytes inner;
  inner.Node(id, FillBytes(Handle(1), 16));
  inner.Condition(id, Head(Kind::kIf, 0, 4), {BodyOf(id, FillBytes(Handle(2), 4)), GraphBytes()}, {0});
  GraphBytes graph;
  graph.Node(id, FillBytes(Handle(0), 16));
  graph.Condition(id, Head(Kind::kSwitch, 0, 12), {GraphBytes(), inner}, {0});
  Define(rig, graph);
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  MR_REQUIRE(rig.device->built.size() == 2);
  const auto& outer = std::get<hal::GraphCondition>(rig.device->built[1].work);
  MR_EXPECT(outer.kind == Kind::kSwitch && outer.stop == nullptr);
  MR_EXPECT_EQ(reinterpret_cast<uintptr_t>(outer.value), Address(rig, Handle(0)) + 12);
  MR_REQUIRE(outer.bodies.size() == 2 && outer.bodies[0].empty() && outer.bodies[1].size() == 2);
  const auto& nested = std::get<hal::GraphCondition>(outer.bodies[1][1].work);
  MR_EXPECT(nested.kind == Kind::kIf && outer.bodies[1][1].after == std::vector<uint32_t>{0});
  MR_EXPECT_EQ(reinterpret_cast<uintptr_t>(nested.value), Address(rig, Handle(0)) + 4);
  MR_EXPECT(nested.bodies.size() == 2 && nested.bodies[0].size() == 1 && nested.bodies[1].empty());
}

MR_TEST(malformed_conditions_fail_their_launches) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const uint32_t id = graphs.id;
  const GraphBytes fill = BodyOf(id, FillBytes(Handle(1), 4));
  GraphBytes deep = fill;
  for (uint32_t n = 0; n <= protocol::kMaxConditionDepth; ++n) {
    GraphBytes around;
    around.Condition(id, Head(Kind::kIf), {deep});
    deep = around;
  }
  std::vector<GraphBytes> wrong{deep};
  const auto add = [&](const protocol::GraphCondition& head, const std::vector<GraphBytes>& bodies) {
    wrong.emplace_back().Condition(id, head, bodies);
  };
  add(Head(static_cast<Kind>(3)), {fill});
  add(Head(Kind::kIf), {});
  add(Head(Kind::kIf), {fill, fill, fill});
  add(Head(Kind::kWhile), {fill, fill});
  add(Head(Kind::kSwitch), {});
  add(Head(Kind::kIf, 0, 2), {fill});
  add(Head(Kind::kIf, 0, 16), {fill});
  add(Head(Kind::kIf), {BodyOf(id + 1, FillBytes(Handle(1), 4))});
  GraphBytes patched = Loop(id);
  patched.Patch(0, 0, 0);
  wrong.push_back(patched);
  for (uint32_t n = 0; n < wrong.size(); ++n) {
    rig.channel->DefineGraph(Handle(n), wrong[n].Bytes(), 0);
    const std::vector<protocol::LaunchArg> entries(n + 1 == wrong.size() ? 1 : 0, ScalarArg(0));
    const Ticket launched = LaunchGraph(rig, graphs.a, Handle(n), entries);
    MR_EXPECT(rig.Completes(graphs.a, launched));
    const auto failures = rig.Failures(graphs.a);
    MR_REQUIRE(!failures.empty());
    MR_EXPECT(failures.back().last == launched && failures.back().status.code() == StatusCode::kInternal);
  }
}

MR_TEST(launches_with_checked_kernels_in_bodies_run_one_by_one_and_report_without_the_word_of_the_device) {
  RecordingBackend backend;
  GraphRig graphs(backend, 0, true);
  Rig& rig = graphs.rig;
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, 1));
  Define(rig, Loop(graphs.id));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  const auto& loop = std::get<hal::GraphCondition>(rig.device->built[0].work);
  const auto& params = std::get<hal::GraphKernel>(loop.bodies[0][0].work).params;
  MR_REQUIRE(params.size() == 3 && loop.stop != nullptr);
  protocol::FaultSlot* const slot = SlotAt(params[1]);
  MR_EXPECT_EQ(params[2], reinterpret_cast<uintptr_t>(loop.stop));

  graphs.controls->completes_at_once = false;
  const Ticket first = LaunchGraph(rig, graphs.a);
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(graphs.a)->Issued() >= first; }));
  const Ticket second = LaunchGraph(rig, b);
  MR_EXPECT(rig.Parks(b, ParkReason::kWindow));
  // What the kernel does.
  slot->index = 5;
  std::atomic_ref(slot->state).store(hal::kFaultWritten);
  std::atomic_ref(*reinterpret_cast<uint32_t*>(params[2])).store(1);
  rig.Backend(0).Complete(first);
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(b)->Issued() >= second; }));
  // The next launch finds the slot and the word empty.
  MR_EXPECT(slot->state == 0 && *loop.stop == 0);
  rig.Backend(1).Complete(second);
  const auto failures = rig.Failures(graphs.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].first == first && failures[0].last == first && failures[0].kernel == kKernel);
  MR_EXPECT(failures[0].status.code() == StatusCode::kBounds && failures[0].fault.index == 5);
  MR_EXPECT(rig.Failures(b).empty());
  graphs.controls->completes_at_once = true;
  MR_EXPECT(rig.Completes(b, LaunchGraph(rig, b)));
}

}  // namespace
}  // namespace millrace::testing
