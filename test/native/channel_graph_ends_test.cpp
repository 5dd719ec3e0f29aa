// Graphs of two devices, and how graphs end: freed, with their thread, with their device, and with another device.
#include <atomic>
#include <thread>
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {
namespace {

ByteList CopyBytes(const GraphRig& dst, const GraphRig& src) {
  return RecordBytes(protocol::CopyRecord{
      .dst_handle = Handle(0), .src_handle = Handle(1), .dst_device = dst.id, .src_device = src.id, .bytes = 16});
}

/// A kernel on the first device, one on the second, and a copy between them.
GraphBytes OfTwo(const GraphRig& first, const GraphRig& second) {
  GraphBytes graph;
  graph.Node(first.id, LaunchBytes(kKernel, {MemoryArg(Handle(1), Access::kWrite)}));
  graph.Node(first.id, CopyBytes(second, first), {0});
  graph.Node(second.id,
             LaunchBytes(kKernel, {MemoryArg(Handle(0), Access::kRead), MemoryArg(Handle(2), Access::kWrite)}), {1});
  return graph;
}

MR_TEST(a_graph_of_two_devices_names_the_tables_of_both) {
  RecordingBackend backend;
  GraphRig first(backend);
  GraphRig second(backend, 1);
  Define(first.rig, OfTwo(first, second));
  const Ticket launched = LaunchGraph(first.rig, first.a);
  MR_EXPECT(first.rig.Parks(first.a, ParkReason::kPeer));
  MR_EXPECT(second.rig.channel->ProbePeer(first.id).ok());
  MR_EXPECT(first.rig.Completes(first.a, launched));
  MR_EXPECT(first.rig.Failures(first.a).empty());
  const auto& built = first.rig.device->built;
  MR_REQUIRE(built.size() == 3);
  MR_EXPECT(built[2].device == second.rig.device && built[0].device == first.rig.device);
  const auto* const peer = std::get_if<hal::GraphPeerCopy>(&built[1].work);
  MR_REQUIRE(peer != nullptr);
  MR_EXPECT(peer->copy.dst_device == second.rig.device && peer->copy.src_device == first.rig.device);
  MR_EXPECT(peer->copy.dst == reinterpret_cast<std::byte*>(Address(second.rig, Handle(0))));
  const auto& kernel = std::get<hal::GraphKernel>(built[2].work);
  MR_EXPECT(kernel.params == (std::vector<uint64_t>{Address(second.rig, Handle(0)), Address(second.rig, Handle(2))}));
  // A kernel's failure poisons the memory of the other device, too.
  backend.controls.completes_at_once = false;
  const Ticket stopped = LaunchGraph(first.rig, first.a);
  MR_EXPECT(first.rig.Logs(Line("a0", stopped, "graph")));
  first.rig.Backend(0).sink().Failed(
      stopped, {.status = Status(StatusCode::kLaunchFailed, "by the test"), .kernel = kKernel, .node = 2});
  first.rig.Backend(0).Complete(stopped);
  backend.controls.completes_at_once = true;
  MR_EXPECT(second.IsPoisoned(Handle(0)));
}

MR_TEST(a_launch_waits_for_kernels_and_memory_of_the_other_device) {
  RecordingBackend backend;
  GraphRig first(backend);
  GraphRig second(backend, 1);
  GraphBytes graph;
  graph.Node(second.id, LaunchBytes(Handle(1), {MemoryArg(Handle(5), Access::kWrite)}));
  Define(first.rig, graph);
  const Ticket launched = LaunchGraph(first.rig, first.a);
  MR_EXPECT(first.rig.Parks(first.a, ParkReason::kBuild));
  Install(second.rig, Handle(1));
  MR_EXPECT(first.rig.Parks(first.a, ParkReason::kPoint));
  second.rig.Alloc(second.a, Handle(5), 16);
  MR_EXPECT(first.rig.Completes(first.a, launched));
  MR_EXPECT(first.rig.Failures(first.a).empty());
  GraphBytes never;
  never.Node(second.id, LaunchBytes(Handle(2), {}));
  Define(first.rig, never, Handle(1));
  const Ticket waiting = LaunchGraph(first.rig, first.a, Handle(1));
  MR_EXPECT(first.rig.Parks(first.a, ParkReason::kBuild));
  second.rig.channel->MarkLost(Status(StatusCode::kDeviceLost, "by the test"));
  MR_EXPECT(first.rig.Completes(first.a, waiting));
  const Failure lost = first.rig.Failures(first.a).back();
  MR_EXPECT(lost.status.code() == StatusCode::kDeviceLost && lost.lost_device == second.id);
}

MR_TEST(a_copy_between_devices_tells_the_backend_its_route) {
  for (const auto route : {protocol::PeerRoute::kDirect, protocol::PeerRoute::kStaged}) {
    RecordingBackend backend;
    backend.controls.route = route;
    GraphRig first(backend);
    GraphRig second(backend, 1);
    MR_EXPECT(second.rig.channel->ProbePeer(first.id).ok());
    Define(first.rig, OfTwo(first, second));
    MR_EXPECT(first.rig.Completes(first.a, LaunchGraph(first.rig, first.a)));
    MR_EXPECT(first.rig.Failures(first.a).empty());
    const auto* const peer = std::get_if<hal::GraphPeerCopy>(&first.rig.device->built[1].work);
    MR_REQUIRE(peer != nullptr);
    MR_EXPECT(peer->copy.route == route);
  }
}

MR_TEST(another_device_closes_after_the_launch_and_ends_the_graph_first) {
  RecordingBackend backend;
  GraphRig first(backend);
  GraphRig second(backend, 1);
  MR_EXPECT(second.rig.channel->ProbePeer(first.id).ok());
  Define(first.rig, OfTwo(first, second));
  MR_EXPECT(first.rig.Completes(first.a, LaunchGraph(first.rig, first.a)));
  backend.controls.completes_at_once = false;
  const Ticket launched = LaunchGraph(first.rig, first.a);
  MR_EXPECT(first.rig.Logs(Line("a0", launched, "graph")));
  std::thread closing([&] { second.rig.channel->Close(); });
  MR_EXPECT(first.rig.Logs("ends b0"));
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  MR_EXPECT_EQ(Count(first.rig, "closes b") + Count(first.rig, "drops a graph of 3"), 0);
  backend.controls.completes_at_once = true;
  first.rig.Backend(0).Complete(launched);
  closing.join();
  MR_EXPECT(first.rig.log->Find("drops a graph of 3") >= 0);
  MR_EXPECT(first.rig.log->Find("drops a graph of 3") < first.rig.log->Find("closes b"));
  MR_EXPECT(first.rig.Failures(first.a).empty());
  MR_EXPECT(first.rig.Completes(first.a, LaunchGraph(first.rig, first.a)));
  const Failure gone = first.rig.Failures(first.a).back();
  MR_EXPECT(gone.status.code() == StatusCode::kDeviceLost && gone.lost_device == second.id);
  MR_EXPECT(first.IsPoisoned(Handle(1)));
}

MR_TEST(another_device_does_not_close_while_the_graph_is_built) {
  RecordingBackend backend;
  GraphRig first(backend);
  GraphRig second(backend, 1);
  MR_EXPECT(second.rig.channel->ProbePeer(first.id).ok());
  Define(first.rig, OfTwo(first, second));
  backend.controls.blocking_calls.is_shut = true;
  const Ticket launched = LaunchGraph(first.rig, first.a);
  MR_EXPECT(Eventually([&] { return backend.controls.blocking_calls.waiting.load() == 1; }));
  std::thread closing([&] { second.rig.channel->Close(); });
  MR_EXPECT(first.rig.Logs("ends b0"));
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  MR_EXPECT_EQ(Count(first.rig, "closes b"), 0);
  backend.controls.blocking_calls.is_shut = false;
  closing.join();
  MR_EXPECT(first.rig.log->Find("drops a graph of 3") < first.rig.log->Find("closes b"));
  MR_EXPECT(first.rig.Completes(first.a, launched));
  MR_EXPECT(first.rig.Failures(first.a).back().status.code() == StatusCode::kDeviceLost);
}

MR_TEST(a_freed_graph_ends_when_its_last_launch_completed) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const uint32_t b = rig.Stream();
  Define(rig, graphs.Reading());
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT(rig.Completes(b, 1));
  backend.controls.completes_at_once = false;
  const Ticket launched = LaunchGraph(rig, graphs.a);
  const Ticket freed = FreeGraph(rig, b);
  MR_EXPECT(rig.Logs(Line("a0", launched, "graph")) && rig.Logs(Line("a1", freed, "nop")));
  rig.Backend(1).Complete(freed);
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  MR_EXPECT_EQ(Count(rig, "drops a graph of 1"), 0);
  rig.Backend(0).Complete(launched);
  MR_EXPECT(rig.Logs("drops a graph of 1"));
  // What was never defined or launched is freed too.
  MR_EXPECT(rig.Failures(b).empty());
  backend.controls.completes_at_once = true;
  MR_EXPECT(rig.Completes(b, FreeGraph(rig, b, Handle(9))));
  MR_EXPECT(rig.Failures(b).empty());
}

MR_TEST(a_device_that_closes_ends_its_graphs_when_their_launches_ended) {
  RecordingBackend backend;
  std::thread completing;
  {
    GraphRig graphs(backend);
    Rig& rig = graphs.rig;
    Define(rig, graphs.Reading());
    MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
    backend.controls.completes_at_once = false;
    const Ticket launched = LaunchGraph(rig, graphs.a);
    MR_EXPECT(rig.Logs(Line("a0", launched, "graph")));
    rig.channel->BeginClose();
    for (int n = 0; n < 1000; ++n) std::this_thread::yield();
    MR_EXPECT_EQ(Count(rig, "drops a graph of 1"), 0);
    backend.controls.log.Add("the launch ends");
    rig.Backend(0).Complete(launched);
  }
  CallLog& log = backend.controls.log;
  MR_EXPECT(log.Find("the launch ends") < log.Find("drops a graph of 1"));
  MR_EXPECT(log.Find("drops a graph of 1") < log.Find("closes a"));
}

MR_TEST(a_device_that_is_given_up_while_a_graph_is_built_ends_that) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, graphs.Reading());
  backend.controls.blocking_calls.is_shut = true;
  LaunchGraph(rig, graphs.a);
  MR_EXPECT(Eventually([&] { return backend.controls.blocking_calls.waiting.load() == 1; }));
  rig.channel->Abandon(std::chrono::milliseconds(1));
  MR_EXPECT_EQ(Count(rig, "closes a"), 0);
  backend.controls.blocking_calls.is_shut = false;
  rig.channel->Close();
  MR_EXPECT(rig.log->Find("drops a graph of 1") >= 0);
  MR_EXPECT(rig.log->Find("drops a graph of 1") < rig.log->Find("closes a"));
}

MR_TEST(the_graphs_of_a_thread_that_leaves_are_freed_before_its_memory) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  constexpr uint32_t kOwner = 3;
  const auto stream = static_cast<uint32_t>(rig.channel->ReserveStream(nullptr, kOwner));
  rig.Submit(stream, protocol::StreamCreateRecord{});
  rig.Alloc(stream, Handle(7), 16);
  GraphBytes graph;
  graph.Node(graphs.id, FillBytes(Handle(7), 16));
  rig.channel->DefineGraph(kGraph, graph.Bytes(), kOwner);
  MR_EXPECT(rig.Completes(stream, LaunchGraph(rig, stream)));
  rig.channel->DefineGraph(Handle(1), graph.Bytes(), kOwner);
  const Ticket freed = FreeGraph(rig, stream, Handle(1));
  MR_EXPECT(rig.Completes(stream, freed));
  std::atomic<bool> is_told{false};
  rig.channel->OwnerLeft(kOwner, [&] { is_told = true; });
  MR_EXPECT(Eventually([&] { return is_told.load(); }));
  MR_EXPECT(rig.Logs("drops a graph of 1"));
  // The handle is free for another thread's graph.
  Define(rig, graphs.Reading());
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

MR_TEST(a_graph_that_waits_for_host_memory_of_a_thread_that_left_fails) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  constexpr uint32_t kOwner = 3;
  const auto stream = static_cast<uint32_t>(rig.channel->ReserveStream(nullptr, kOwner));
  rig.Submit(stream, protocol::StreamCreateRecord{});
  GraphBytes graph;
  graph.Node(graphs.id, RecordBytes(protocol::CopyRecord{.dst_handle = Handle(0),
                                                         .src_handle = Handle(9),
                                                         .src_space = static_cast<uint16_t>(MemorySpace::kHost),
                                                         .dst_device = graphs.id,
                                                         .src_device = graphs.id,
                                                         .bytes = 16}));
  rig.channel->DefineGraph(kGraph, graph.Bytes(), kOwner);
  LaunchGraph(rig, stream);
  MR_EXPECT(rig.Parks(stream, ParkReason::kPin));
  std::atomic<bool> is_told{false};
  rig.channel->OwnerLeft(kOwner, [&] { is_told = true; });
  MR_EXPECT(Eventually([&] { return is_told.load(); }));
  MR_EXPECT(graphs.IsPoisoned(Handle(0)));
}

}  // namespace
}  // namespace millrace::testing
