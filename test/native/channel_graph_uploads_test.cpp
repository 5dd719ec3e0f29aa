// UPLOAD_GRAPH: a graph is built and brought to the device before its first launch.
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {
namespace {

Ticket Upload(Rig& rig, uint32_t stream, uint32_t graph = kGraph) {
  return rig.Submit(stream, protocol::UploadGraphRecord{.graph = graph});
}

MR_TEST(an_upload_builds_the_graph_and_runs_nothing) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, graphs.Reading());
  const Ticket uploaded = Upload(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, uploaded));
  MR_EXPECT(rig.Logs(Line("a0", uploaded, "upload")) && rig.Logs("builds a graph of 1"));
  MR_EXPECT_EQ(Count(rig, Line("a0", uploaded, "graph")), 0);
  const Ticket launched = LaunchGraph(rig, graphs.a);
  const Ticket again = Upload(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, again));
  MR_EXPECT(rig.Logs(Line("a0", launched, "graph")) && rig.Logs(Line("a0", again, "upload")));
  MR_EXPECT_EQ(Count(rig, "builds a graph of 1"), 1);
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

MR_TEST(the_first_launch_after_an_upload_sends_the_values_of_its_entries) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph;
  graph.Node(graphs.id, LaunchBytes(kKernel, {ScalarArg(0), MemoryArg(0, Access::kRead), ScalarArg(5)}));
  graph.Patch(0, 0, 0);
  graph.Patch(0, 1, 1);
  Define(rig, graph);
  MR_EXPECT(rig.Completes(graphs.a, Upload(rig, graphs.a)));
  MR_EXPECT(std::get<hal::GraphKernel>(rig.device->built[0].work).params == (std::vector<uint64_t>{0, 0, 5}));
  const Ticket launched = LaunchGraph(rig, graphs.a, kGraph, {ScalarArg(3), MemoryArg(Handle(0), Access::kRead, 8)});
  MR_EXPECT(rig.Completes(graphs.a, launched));
  MR_EXPECT(rig.Logs(Line("a0", launched, "graph 0.0=3 0.1=" + std::to_string(Address(rig, Handle(0)) + 8))));
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

MR_TEST(a_launch_on_another_stream_waits_for_the_build_of_an_upload) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const uint32_t b = rig.Stream();
  Define(rig, graphs.Reading());
  backend.controls.blocking_calls.is_shut = true;
  const Ticket uploaded = Upload(rig, graphs.a);
  const Ticket launched = LaunchGraph(rig, b);
  MR_EXPECT(rig.Parks(graphs.a, ParkReason::kBuild) && rig.Parks(b, ParkReason::kBuild));
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(rig.Completes(graphs.a, uploaded) && rig.Completes(b, launched));
  MR_EXPECT_EQ(Count(rig, "builds a graph of 1"), 1);
  // The graph stays until the upload is over.
  backend.controls.completes_at_once = false;
  const Ticket last = Upload(rig, graphs.a);
  MR_EXPECT(rig.Logs(Line("a0", last, "upload")));
  backend.controls.completes_at_once = true;
  MR_EXPECT(rig.Completes(b, FreeGraph(rig, b)));
  MR_EXPECT_EQ(Count(rig, "drops a graph of 1"), 0);
  rig.Backend(0).Complete(last);
  MR_EXPECT(rig.Logs("drops a graph of 1"));
}

MR_TEST(an_upload_that_fails_poisons_nothing_and_the_next_one_builds) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, graphs.Reading());
  backend.controls.refuse_blocking_calls = 1;
  MR_EXPECT(rig.Completes(graphs.a, Upload(rig, graphs.a)));
  MR_EXPECT_EQ(rig.Failures(graphs.a).size(), size_t{1});
  MR_EXPECT(!graphs.IsPoisoned(Handle(1)));
  // What it reads may be poisoned: it reads nothing.
  graphs.Poison(Handle(0));
  const size_t before = rig.Failures(graphs.a).size();
  const Ticket uploaded = Upload(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, uploaded));
  MR_EXPECT(rig.Logs(Line("a0", uploaded, "upload")));
  MR_EXPECT_EQ(rig.Failures(graphs.a).size(), before);
  // A handle that names nothing.
  MR_EXPECT(rig.Completes(graphs.a, Upload(rig, graphs.a, Handle(5))));
  MR_EXPECT(rig.Failures(graphs.a).back().status.code() == StatusCode::kInternal);
}

MR_TEST(memory_that_could_not_be_allocated_fails_the_upload) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  backend.controls.free_bytes = 100;
  const Ticket failed = rig.Alloc(graphs.a, Handle(5), 101);
  MR_EXPECT(rig.Completes(graphs.a, failed));
  GraphBytes graph;
  graph.Node(graphs.id, LaunchBytes(kKernel, {MemoryArg(Handle(5), Access::kWrite)}));
  Define(rig, graph);
  const Ticket uploaded = Upload(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, uploaded));
  MR_EXPECT(rig.Failures(graphs.a).back().status.code() == StatusCode::kUpstream);
  MR_EXPECT_EQ(Count(rig, "builds a graph of 1"), 0);
}

}  // namespace
}  // namespace millrace::testing
