// Fault reports of graphs: which launch fails, with which node, and what is poisoned.
// channel_graph_fault_slots_test.cpp has launches that are queued together.
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "checked_graph.h"

namespace millrace::testing {
namespace {

MR_TEST(every_checked_node_has_a_slot_and_the_word_of_the_device) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  const uint32_t b = rig.Stream();
  MR_EXPECT(checked.Slot(0) != nullptr && checked.Slot(2) != nullptr && checked.Slot(0) != checked.Slot(2));
  const auto word = reinterpret_cast<uintptr_t>(&rig.FaultWord());
  MR_EXPECT(checked.Hidden(0, 1) == word && checked.Hidden(2, 1) == word);
  // So a launch on another stream changes no parameter.
  const Ticket other = LaunchGraph(rig, b);
  MR_EXPECT(rig.Completes(b, other) && rig.Logs(Line("a1", other, "graph")));
}

MR_TEST(a_report_fails_the_launch_with_its_node_and_the_next_launch_works) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  backend.controls.completes_at_once = false;
  const Ticket launched = LaunchGraph(rig, checked.a);
  MR_EXPECT(rig.Logs(Line("a0", launched, "graph")));
  checked.Report(2);
  rig.Backend(0).Complete(launched);
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].first == launched && failures[0].last == launched && failures[0].node == 2);
  MR_EXPECT(failures[0].status.code() == StatusCode::kBounds && failures[0].kernel == kKernel);
  MR_EXPECT(failures[0].has_fault && failures[0].fault.index == 77);
  backend.controls.completes_at_once = true;
  MR_EXPECT(checked.graphs.IsPoisoned(Handle(1)));
  const Ticket next = LaunchGraph(rig, checked.a);
  MR_EXPECT(rig.Completes(checked.a, next));
  MR_EXPECT(checked.Slot(2)->state == 0 && checked.Slot(2)->index == 0);
  MR_EXPECT(!checked.graphs.IsPoisoned(Handle(1)));
  // A second report is a failure of its own.
  checked.Report(0);
  const auto later = rig.Failures(checked.a);
  MR_REQUIRE(later.size() == 4 && later[2].first == next && later[2].node == 0);
  // What read the memory meanwhile derives from it.
  MR_EXPECT(later[3].status.code() == StatusCode::kUpstream && later[3].cause == later[2].id);
}

MR_TEST(a_launch_that_completed_before_a_later_one_began_is_not_blamed) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, LaunchGraph(rig, b)));
  const Ticket good = LaunchGraph(rig, checked.a);
  MR_EXPECT(rig.Completes(checked.a, good));
  backend.controls.completes_at_once = false;
  const Ticket bad = LaunchGraph(rig, checked.a);
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(checked.a)->Issued() >= bad; }));
  checked.Report(0);
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT_EQ(failures[0].first, bad);
  MR_EXPECT(rig.Failures(b).empty());
  rig.Backend(0).Complete(bad);
}

MR_TEST(a_report_poisons_only_what_nothing_has_overwritten_since) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  backend.controls.completes_at_once = false;
  const Ticket launched = LaunchGraph(rig, checked.a);
  const Ticket filled = rig.Fill(checked.a, Handle(1), 16);
  MR_EXPECT(rig.Logs(Line("a0", filled, "fill")));
  checked.Report(0);
  backend.controls.completes_at_once = true;
  rig.Backend(0).Complete(filled);
  MR_EXPECT_EQ(rig.Failures(checked.a).size(), size_t{1});
  MR_EXPECT(rig.Failures(checked.a)[0].first == launched);
  MR_EXPECT(!checked.graphs.IsPoisoned(Handle(1)));
}

MR_TEST(a_report_that_comes_when_the_graph_is_freed_is_not_lost_and_the_slots_are_reused) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  backend.controls.completes_at_once = false;
  const Ticket launched = LaunchGraph(rig, checked.a);
  const Ticket freed = FreeGraph(rig, checked.a);
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(checked.a)->Issued() >= freed; }));
  protocol::FaultSlot* const slot = checked.Slot(2);
  checked.Report(2);
  MR_EXPECT_EQ(Count(rig, "drops a graph of 3"), 0);
  backend.controls.completes_at_once = true;
  rig.Backend(0).Complete(freed);
  MR_EXPECT(rig.Logs("drops a graph of 3"));
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].first == launched && failures[0].node == 2);
  // Empty for its next user.
  MR_EXPECT(slot->state == 0 && slot->index == 0);
  GraphBytes graph;
  graph.Node(checked.graphs.id, LaunchBytes(kKernel, {}));
  Define(rig, graph, Handle(1));
  MR_EXPECT(rig.Completes(checked.a, LaunchGraph(rig, checked.a, Handle(1))));
  MR_EXPECT(checked.Slot(0) == slot);
}

MR_TEST(a_kernel_that_stops_fails_its_launch_with_the_node) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  backend.controls.completes_at_once = false;
  const Ticket launched = LaunchGraph(rig, checked.a);
  MR_EXPECT(rig.Logs(Line("a0", launched, "graph")));
  const hal::KernelFailure stopped{
      .status = Status(StatusCode::kLaunchFailed, "by the test"), .kernel = kKernel, .node = 2};
  // A launch that is queued behind it overwrites what it poisons.
  const Ticket next = checked.Queue(1)[0];
  rig.Backend(0).sink().Failed(launched, stopped);
  checked.CompleteAll(next);
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].first == launched && failures[0].last == launched);
  MR_EXPECT(failures[0].node == 2 && failures[0].kernel == kKernel);
  MR_EXPECT(!checked.graphs.IsPoisoned(Handle(1)));
  const Ticket last = checked.Queue(1)[0];
  rig.Backend(0).sink().Failed(last, stopped);
  checked.CompleteAll(last);
  MR_EXPECT(checked.graphs.IsPoisoned(Handle(1)));
}

MR_TEST(a_copy_whose_host_memory_is_gone_reports_without_a_kernel) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  GraphRig other(backend, 1);
  std::array<std::byte, 16> host{};
  MR_EXPECT(other.rig.channel->RegisterHost(Handle(0), host, true).ok());
  GraphBytes graph;
  graph.Node(graphs.id, RecordBytes(protocol::CopyRecord{.dst_handle = Handle(0),
                                                         .src_handle = Handle(0),
                                                         .src_space = static_cast<uint16_t>(MemorySpace::kHost),
                                                         .dst_device = graphs.id,
                                                         .src_device = other.id,
                                                         .bytes = 16}));
  Define(graphs.rig, graph);
  backend.controls.completes_at_once = false;
  const Ticket launched = LaunchGraph(graphs.rig, graphs.a);
  MR_EXPECT(graphs.rig.Logs(Line("a0", launched, "graph")));
  const auto& copy = std::get<hal::GraphCopy>(graphs.rig.device->built[0].work);
  MR_REQUIRE(copy.host.report != nullptr);
  const Ticket second = LaunchGraph(graphs.rig, graphs.a);
  const Ticket third = LaunchGraph(graphs.rig, graphs.a);
  MR_EXPECT(Eventually([&] { return graphs.rig.channel->FindStream(graphs.a)->Issued() >= third; }));
  const uint64_t built = reinterpret_cast<uintptr_t>(copy.host.report);
  const uint64_t slot = PatchedParam(graphs.rig, "a0 " + std::to_string(second), "0.0", built);
  MR_EXPECT(slot != built && slot != PatchedParam(graphs.rig, "a0 " + std::to_string(third), "0.0", built));
  std::atomic_ref(SlotAt(slot)->state).store(hal::kFaultWritten);
  std::atomic_ref(graphs.rig.FaultWord()).store(1);
  const auto failures = graphs.rig.Failures(graphs.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].status.code() == StatusCode::kDeviceLost && !failures[0].has_fault && failures[0].node == 0);
  MR_EXPECT_EQ(failures[0].first, second);
  graphs.rig.Backend(0).Complete(third);
}

}  // namespace
}  // namespace millrace::testing
