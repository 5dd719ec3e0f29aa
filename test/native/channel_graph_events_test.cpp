// Events with timing that graphs record: whose times a launch sets, which launch is asked for, and how long each is
// kept.
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {
namespace {

using protocol::EventKind;

ByteList RecordEventBytes(uint32_t handle, EventKind kind = EventKind::kTiming) {
  return RecordBytes(protocol::RecordEventRecord{.handle = handle, .kind = static_cast<uint32_t>(kind)});
}

/// Two events with a fill between them.
GraphBytes Between(const GraphRig& graphs, uint32_t start, uint32_t end) {
  GraphBytes graph;
  const uint32_t first = graph.Node(graphs.id, RecordEventBytes(start));
  const uint32_t fill = graph.Node(graphs.id, FillBytes(Handle(0), 16), {first});
  graph.Node(graphs.id, RecordEventBytes(end), {fill});
  return graph;
}

StatusCode Code(Rig& rig, uint32_t start, uint32_t end) {
  return rig.channel->Elapsed(start, end).status().code();
}

MR_TEST(the_last_launch_that_completed_is_asked_for) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Between(graphs, Handle(0), Handle(1)));
  MR_EXPECT(Code(rig, Handle(0), Handle(1)) == StatusCode::kState);
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  MR_EXPECT_EQ(rig.channel->Elapsed(Handle(0), Handle(1)).value(), 1.0);
  MR_EXPECT_EQ(rig.channel->Elapsed(Handle(1), Handle(0)).value(), -1.0);
  // An ordinary event before the next launch, and one after it.
  MR_EXPECT(rig.Completes(graphs.a, rig.EventHandle(graphs.a, Handle(2))));
  const auto since = [&](uint32_t event) { return rig.channel->Elapsed(Handle(2), event).value(); };
  MR_EXPECT_EQ(since(Handle(0)), -2.0);
  backend.controls.completes_at_once = false;
  const Ticket second = LaunchGraph(rig, graphs.a);
  const Ticket third = LaunchGraph(rig, graphs.a);
  MR_EXPECT(rig.Logs(Line("a0", third, "graph of 2 events")));
  MR_EXPECT_EQ(since(Handle(0)), -2.0);
  rig.Backend(0).Complete(second);
  MR_EXPECT_EQ(since(Handle(0)), 1.0);
  MR_EXPECT_EQ(since(Handle(1)), 2.0);
  rig.Backend(0).Complete(third);
  MR_EXPECT_EQ(since(Handle(1)), 4.0);
  backend.controls.completes_at_once = true;
}

MR_TEST(two_graphs_that_record_one_event_give_the_times_of_one_launch) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Between(graphs, Handle(0), Handle(1)));
  GraphBytes other;
  other.Node(graphs.id, RecordEventBytes(Handle(0)));
  Define(rig, other, Handle(1));
  LaunchGraph(rig, graphs.a);
  LaunchGraph(rig, graphs.a, Handle(1));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, Handle(1))));
  // The last launch that recorded both was dropped when a later one of the other graph had completed.
  MR_EXPECT_EQ(rig.channel->Elapsed(Handle(0), Handle(0)).value(), 0.0);
  MR_EXPECT(rig.channel->Elapsed(Handle(0), Handle(1)).ok());
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT_EQ(rig.channel->Elapsed(Handle(0), Handle(1)).value(), 1.0);
}

MR_TEST(events_are_kept_by_their_graph_and_dropped_behind_the_launches) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Between(graphs, Handle(0), Handle(1)));
  int most = 0;
  for (int n = 0; n < 5000; ++n) {
    LaunchGraph(rig, graphs.a);
    most = std::max(most, backend.controls.live_events.load());
  }
  MR_EXPECT(rig.Completes(graphs.a, rig.channel->LastTicket(graphs.a)));
  MR_EXPECT(most < 4 * static_cast<int>(protocol::kStreamWindow));
  for (const uint32_t event : {Handle(0), Handle(1)}) {
    MR_EXPECT(rig.Completes(graphs.a, rig.Submit(graphs.a, protocol::FreeEventRecord{.handle = event})));
  }
  MR_EXPECT(Code(rig, Handle(0), Handle(1)) == StatusCode::kState);
  // Their handles name nothing, but the graph goes on.
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  MR_EXPECT(rig.Completes(graphs.a, FreeGraph(rig, graphs.a)));
  MR_EXPECT(rig.Completes(graphs.a, rig.Submit(graphs.a, protocol::StreamDestroyRecord{})));
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, rig.Nop(b).ticket));
  rig.device->built.clear();  // The test's own copy.
  MR_EXPECT(Eventually([&] { return backend.controls.live_events.load() == 0; }));
}

MR_TEST(what_is_no_event_with_timing_of_the_graphs_device_is_malformed) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  GraphRig others(backend, 1);
  Rig& rig = graphs.rig;
  MR_EXPECT(rig.Completes(graphs.a, rig.EventHandle(graphs.a, Handle(5))));
  struct Wrong {
    uint32_t device;
    ByteList record;
  };
  const std::vector<Wrong> wrong{{graphs.id, RecordEventBytes(Handle(0), EventKind::kInterprocess)},
                                 {graphs.id, RecordEventBytes(Handle(0), static_cast<EventKind>(7))},
                                 {graphs.id, RecordEventBytes(Handle(3, 0))},
                                 {graphs.id, RecordEventBytes(Handle(5))},
                                 {others.id, RecordEventBytes(Handle(0))}};
  uint32_t graph = 10;
  for (const auto& [device, record] : wrong) {
    GraphBytes bytes;
    bytes.Node(device, record);
    Define(rig, bytes, Handle(++graph));
    const Ticket launched = LaunchGraph(rig, graphs.a, Handle(graph));
    MR_EXPECT(rig.Completes(graphs.a, launched));
    const auto failures = rig.Failures(graphs.a);
    MR_REQUIRE(!failures.empty() && failures.back().last == launched);
    MR_EXPECT(failures.back().status.code() == StatusCode::kInternal);
  }
  // An event of a graph is none of a stream.
  Define(rig, Between(graphs, Handle(0), Handle(1)));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  const Ticket recorded = rig.EventHandle(graphs.a, Handle(0));
  MR_EXPECT(rig.Completes(graphs.a, recorded));
  MR_EXPECT_EQ(rig.Failures(graphs.a).back().last, recorded);
}

MR_TEST(a_launch_that_the_backend_refuses_leaves_the_times_of_the_one_before_it) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, Between(graphs, Handle(0), Handle(1)));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  backend.controls.refuse_graphs = 1;
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT(rig.Failures(graphs.a).size() == 1);
  MR_EXPECT_EQ(rig.channel->Elapsed(Handle(0), Handle(1)).value(), 1.0);
}

}  // namespace
}  // namespace millrace::testing
