// Fault slots of graphs: launches that are queued together have different ones, so each tells its own failure.
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "checked_graph.h"

namespace millrace::testing {
namespace {

/// A graph of checked kernels without parameters, built by a first launch.
void DefineChecked(Rig& rig, uint32_t device, uint32_t stream, uint32_t node_count) {
  GraphBytes graph;
  for (uint32_t n = 0; n < node_count; ++n) graph.Node(device, LaunchBytes(kKernel, {}));
  Define(rig, graph);
  MR_EXPECT(rig.Completes(stream, LaunchGraph(rig, stream)));
}

MR_TEST(of_queued_launches_those_that_report_fail_and_no_others) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  const std::vector<Ticket> launched = checked.Queue(5);
  std::set<protocol::FaultSlot*> slots;
  for (const Ticket each : launched) slots.insert({checked.SlotOf(each, 0), checked.SlotOf(each, 2)});
  MR_EXPECT_EQ(slots.size(), size_t{10});
  checked.ReportAt(checked.SlotOf(launched[3], 2), 33);
  MR_REQUIRE(rig.Failures(checked.a).size() == 1);
  checked.ReportAt(checked.SlotOf(launched[1], 0), 11);
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[0].first == launched[3] && failures[0].last == launched[3] && failures[0].node == 2);
  MR_EXPECT(failures[1].first == launched[1] && failures[1].last == launched[1] && failures[1].node == 0);
  MR_EXPECT(failures[0].fault.index == 33 && failures[1].fault.index == 11 && failures[1].kernel == kKernel);
  checked.CompleteAll(launched.back());
  MR_EXPECT(rig.Completes(checked.a, LaunchGraph(rig, checked.a)));
  MR_EXPECT_EQ(rig.Failures(checked.a).size(), size_t{2});
}

MR_TEST(a_late_report_does_not_poison_what_the_next_launch_has_overwritten) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  const std::vector<Ticket> launched = checked.Queue(3);
  checked.ReportAt(checked.SlotOf(launched[1], 0));
  MR_EXPECT_EQ(checked.rig.Failures(checked.a).size(), size_t{1});
  checked.CompleteAll(launched.back());
  MR_EXPECT(!checked.graphs.IsPoisoned(Handle(1)));
  const std::vector<Ticket> more = checked.Queue(2);
  checked.ReportAt(checked.SlotOf(more[1], 0));
  MR_EXPECT_EQ(checked.rig.Failures(checked.a).back().first, more[1]);
  checked.CompleteAll(more.back());
  MR_EXPECT(checked.graphs.IsPoisoned(Handle(1)));
}

MR_TEST(two_reports_of_one_launch_are_one_failure_with_the_first_node) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  const std::vector<Ticket> launched = checked.Queue(2);
  checked.ReportAt(checked.SlotOf(launched[1], 2));
  checked.ReportAt(checked.SlotOf(launched[1], 0));
  const auto failures = checked.rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].first == launched[1] && failures[0].node == 0);
  checked.CompleteAll(launched.back());
}

MR_TEST(a_launch_behind_a_report_does_not_wait_and_a_report_of_another_stream_is_its_own) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, 1));
  const std::vector<Ticket> launched = checked.Queue(2);
  checked.ReportAt(checked.SlotOf(launched[0], 0));
  const Ticket other = LaunchGraph(rig, b);
  MR_EXPECT(checked.IsIssued(b, other));
  const uint64_t slot = PatchedParam(rig, "a1 " + std::to_string(other), "2.0", checked.Hidden(2, 0));
  MR_EXPECT(SlotAt(slot) != checked.SlotOf(launched[0], 2) && SlotAt(slot) != checked.SlotOf(launched[1], 2));
  checked.ReportAt(SlotAt(slot));
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT_EQ(failures[0].first, launched[0]);
  const auto others = rig.Failures(b);
  MR_REQUIRE(others.size() == 1);
  MR_EXPECT(others[0].first == other && others[0].node == 2);
  rig.Backend(1).Complete(other);
  checked.CompleteAll(launched.back());
}

MR_TEST(slots_are_used_again_when_their_launches_have_completed) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  std::set<protocol::FaultSlot*> slots;
  std::vector<Ticket> reported;
  for (int round = 0; round < 20; ++round) {
    const std::vector<Ticket> launched = checked.Queue(3);
    for (const Ticket each : launched) {
      protocol::FaultSlot* const slot = checked.SlotOf(each, 0);
      MR_EXPECT(slot->state == 0 && slot->index == 0);
      slots.insert(slot);
    }
    // Nobody asks for it: the next launch finds it.
    reported.push_back(launched[static_cast<size_t>(round) % 3]);
    checked.ReportAt(checked.SlotOf(reported.back(), 0));
    checked.CompleteAll(launched.back());
  }
  MR_EXPECT_EQ(slots.size(), size_t{3});
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == reported.size());
  for (size_t n = 0; n < reported.size(); ++n) MR_EXPECT_EQ(failures[n].first, reported[n]);
  // Launches that come one by one change no parameter.
  for (int n = 0; n < 3; ++n) {
    const Ticket next = LaunchGraph(rig, checked.a);
    MR_EXPECT(rig.Completes(checked.a, next) && (n == 0 || rig.Logs(Line("a0", next, "graph"))));
  }
}

MR_TEST(a_launch_that_the_backend_refuses_leaves_the_slots_of_the_one_before_it) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  const Ticket before = checked.Queue(1)[0];
  backend.controls.refuse_graphs = 1;
  const Ticket refused = LaunchGraph(rig, checked.a);
  const Ticket after = LaunchGraph(rig, checked.a);
  MR_EXPECT(checked.IsIssued(checked.a, after));
  MR_EXPECT(checked.SlotOf(after, 0) != checked.SlotOf(before, 0));
  checked.ReportAt(checked.SlotOf(after, 0));
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[0].first == refused && failures[0].status.code() == StatusCode::kLaunchFailed);
  MR_EXPECT(failures[1].first == after && failures[1].status.code() == StatusCode::kBounds);
  checked.CompleteAll(after);
}

MR_TEST(a_launch_parks_its_stream_while_earlier_ones_have_all_slots_of_the_graph) {
  // 4,096 slots, and never less than two launches; 512 launches of a small graph.
  for (const auto& [node_count, most] : {std::pair(1365u, 3u), {2049u, 2u}, {1u, 512u}}) {
    RecordingBackend backend;
    GraphRig graphs(backend, 0, true);
    Rig& rig = graphs.rig;
    const uint32_t b = rig.Stream();
    MR_EXPECT(rig.Completes(b, 1));
    DefineChecked(rig, graphs.id, graphs.a, node_count);
    backend.controls.completes_at_once = false;
    // Of two streams, so that the window of neither is full.
    std::vector<std::pair<uint32_t, Ticket>> launched;
    for (uint32_t n = 0; n < most; ++n) {
      const uint32_t stream = n < most / 2 ? graphs.a : b;
      launched.emplace_back(stream, LaunchGraph(rig, stream));
    }
    for (const auto& [stream, ticket] : launched) {
      MR_EXPECT(Eventually([&] { return rig.channel->FindStream(stream)->Issued() >= ticket; }));
    }
    const Ticket beyond = LaunchGraph(rig, b);
    MR_EXPECT(rig.Parks(b, ParkReason::kWindow));
    MR_EXPECT_EQ(rig.channel->FindStream(b)->Issued(), beyond - 1);
    rig.Backend(0).Complete(launched[0].second);
    MR_EXPECT(Eventually([&] { return rig.channel->FindStream(b)->Issued() >= beyond; }));
    // It has the slots of the launch that completed.
    const uint64_t slot = PatchedParam(rig, "a1 " + std::to_string(beyond), "0.0", 0);
    const auto& kernel = std::get<hal::GraphKernel>(rig.device->built[0].work);
    MR_EXPECT_EQ(slot, kernel.params[0]);
    backend.controls.completes_at_once = true;
    rig.Backend(0).Complete(rig.channel->FindStream(graphs.a)->Issued());
    rig.Backend(1).Complete(beyond);
    MR_EXPECT(rig.Failures(b).empty());
  }
}

MR_TEST(reports_of_queued_launches_outlive_the_free_of_their_graph) {
  RecordingBackend backend;
  CheckedGraph checked(backend);
  Rig& rig = checked.rig;
  const std::vector<Ticket> launched = checked.Queue(4);
  const Ticket freed = FreeGraph(rig, checked.a);
  MR_EXPECT(checked.IsIssued(checked.a, freed));
  std::vector<protocol::FaultSlot*> slots;
  for (const Ticket each : launched) slots.push_back(checked.SlotOf(each, 2));
  checked.ReportAt(slots[0]);
  checked.ReportAt(slots[2]);
  checked.CompleteAll(freed);
  MR_EXPECT(rig.Logs("drops a graph of 3"));
  const auto failures = rig.Failures(checked.a);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[0].first == launched[0] && failures[1].first == launched[2]);
  for (const protocol::FaultSlot* const slot : slots) MR_EXPECT(slot->state == 0 && slot->index == 0);
}

}  // namespace
}  // namespace millrace::testing
