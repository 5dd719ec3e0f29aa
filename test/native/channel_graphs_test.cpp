// Graphs: what a launch waits for, what it reads and writes, how it fails, and when the graph ends.
#include <array>
#include <vector>

#include "graph_rig.h"
#include "refused_threads.h"

namespace millrace::testing {
namespace {

MR_TEST(a_graph_is_built_once_in_the_backends_form_and_launched_again) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph;
  const uint32_t fill = graph.Node(graphs.id, FillBytes(Handle(0), 8, 8));
  const uint32_t nop = graph.Node(graphs.id, RecordBytes(protocol::NopRecord{}), {fill});
  const uint32_t launch = graph.Node(
      graphs.id, LaunchBytes(kKernel, {ScalarArg(7), MemoryArg(Handle(1), Access::kWrite, 4)}, 32), {fill, nop});
  graph.Node(graphs.id,
             RecordBytes(protocol::CopyRecord{.dst_handle = Handle(2),
                                              .src_handle = Handle(1),
                                              .dst_device = graphs.id,
                                              .src_device = graphs.id,
                                              .src_offset = 8,
                                              .bytes = 8}),
             {launch});
  const std::vector<protocol::StridedAxis> axes{{.extent = 2, .dst_stride = 8, .src_stride = 4}};
  graph.Node(graphs.id, RecordBytes(
                            protocol::CopyStridedRecord{
                                .dst_handle = Handle(0), .src_handle = Handle(1), .element_bytes = 4, .rank = 1},
                            axes));
  Define(rig, graph);
  const Ticket first = LaunchGraph(rig, graphs.a);
  const Ticket second = LaunchGraph(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, second));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  MR_EXPECT_EQ(Count(rig, "builds a graph of 5"), 1);
  MR_EXPECT(rig.Logs(Line("a0", first, "graph")) && rig.Logs(Line("a0", second, "graph")));

  const auto& built = rig.device->built;
  MR_REQUIRE(built.size() == 5);
  MR_EXPECT(built[0].device == rig.device && built[2].after == (std::vector<uint32_t>{0, 1}));
  const auto* const fills = std::get_if<hal::GraphFill>(&built[0].work);
  MR_REQUIRE(fills != nullptr);
  MR_EXPECT(fills->dst == reinterpret_cast<std::byte*>(Address(rig, Handle(0)) + 8) && fills->count == 8);
  MR_EXPECT(std::holds_alternative<hal::GraphEmpty>(built[1].work));
  const auto* const kernel = std::get_if<hal::GraphKernel>(&built[2].work);
  MR_REQUIRE(kernel != nullptr);
  MR_EXPECT(kernel->block.x == 32 && kernel->kernel_id == kKernel && kernel->kernel != nullptr);
  MR_EXPECT(kernel->params == (std::vector<uint64_t>{7, Address(rig, Handle(1)) + 4}));
  const auto* const copy = std::get_if<hal::GraphCopy>(&built[3].work);
  MR_REQUIRE(copy != nullptr);
  MR_EXPECT(copy->src == reinterpret_cast<std::byte*>(Address(rig, Handle(1)) + 8) && copy->bytes == 8);
  const auto* const strided = std::get_if<hal::GraphStrided>(&built[4].work);
  MR_REQUIRE(strided != nullptr && strided->axes.size() == 1);
  MR_EXPECT(strided->src != nullptr && strided->axes[0].dst_stride == 8);

  MR_EXPECT(rig.Completes(graphs.a, FreeGraph(rig, graphs.a)));
  MR_EXPECT(rig.Logs("drops a graph of 5"));
  // The handle names nothing now.
  const Ticket late = LaunchGraph(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, late));
  MR_EXPECT(rig.Failures(graphs.a).back().status.code() == StatusCode::kInternal);
}

MR_TEST(a_launch_waits_for_kernels_and_for_memory) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const uint32_t b = rig.Stream();
  GraphBytes graph;
  graph.Node(graphs.id, LaunchBytes(Handle(1), {}));
  graph.Node(graphs.id, FillBytes(Handle(5), 16));
  Define(rig, graph);
  const Ticket launched = LaunchGraph(rig, graphs.a);
  MR_EXPECT(rig.Parks(graphs.a, ParkReason::kBuild));
  Install(rig, Handle(1));
  MR_EXPECT(rig.Parks(graphs.a, ParkReason::kPoint));
  rig.Alloc(b, Handle(5), 16);
  MR_EXPECT(rig.Completes(graphs.a, launched));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  // And for the memory of an entry, at every launch.
  Define(rig, graphs.WithEntry(MemoryArg(0, Access::kRead)), Handle(1));
  for (const uint32_t memory : {Handle(6), Handle(7)}) {
    const Ticket later = LaunchGraph(rig, graphs.a, Handle(1), {MemoryArg(memory, Access::kRead)});
    MR_EXPECT(rig.Parks(graphs.a, ParkReason::kPoint));
    rig.Alloc(b, memory, 16);
    MR_EXPECT(rig.Completes(graphs.a, later));
  }
  MR_EXPECT(rig.Failures(graphs.a).empty());
}

MR_TEST(streams_that_launch_a_graph_while_it_is_built_wait_and_others_go_on) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const uint32_t b = rig.Stream();
  const uint32_t c = rig.Stream();
  Define(rig, graphs.Reading());
  backend.controls.blocking_calls.is_shut = true;
  const Ticket first = LaunchGraph(rig, graphs.a);
  MR_EXPECT(Eventually([&] { return backend.controls.blocking_calls.waiting.load() == 1; }));
  const Ticket second = LaunchGraph(rig, b);
  MR_EXPECT(rig.Parks(graphs.a, ParkReason::kBuild) && rig.Parks(b, ParkReason::kBuild));
  MR_EXPECT(rig.Completes(c, rig.Nop(c).ticket));
  rig.channel->WakeStream(b);  // For nothing.
  MR_EXPECT(rig.Completes(c, rig.Nop(c).ticket));
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(rig.Completes(graphs.a, first) && rig.Completes(b, second));
  MR_EXPECT_EQ(Count(rig, "builds a graph of 1"), 1);
  MR_EXPECT(rig.Logs(Line("a1", second, "graph")));
}

MR_TEST(a_build_that_fails_fails_the_launches_that_waited_and_the_next_tries_again) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const uint32_t b = rig.Stream();
  Define(rig, graphs.Reading());
  backend.controls.blocking_call_refusal = StatusCode::kOutOfMemory;
  backend.controls.refuse_blocking_calls = 1;
  backend.controls.free_bytes = 1000;
  backend.controls.blocking_calls.is_shut = true;
  const Ticket first = LaunchGraph(rig, graphs.a);
  const Ticket waiting = LaunchGraph(rig, b);
  MR_EXPECT(rig.Parks(b, ParkReason::kBuild));
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(rig.Completes(graphs.a, first) && rig.Completes(b, waiting));
  const auto failures = rig.Failures(graphs.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].status.code() == StatusCode::kOutOfMemory && failures[0].status.driver_code() == 8);
  MR_EXPECT_EQ(failures[0].free_bytes, uint64_t{1000});
  MR_EXPECT_EQ(rig.Failures(b).size(), size_t{1});
  MR_EXPECT(graphs.IsPoisoned(Handle(1)));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT(!graphs.IsPoisoned(Handle(1)));
  MR_EXPECT_EQ(Count(rig, "builds a graph of 1"), 2);
}

MR_TEST(entries_replace_parameters_and_only_changed_values_are_sent) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph;
  graph.Node(graphs.id, LaunchBytes(kKernel, {ScalarArg(0), MemoryArg(0, Access::kRead), ScalarArg(5)}));
  graph.Node(graphs.id, LaunchBytes(kKernel, {MemoryArg(0, Access::kWrite)}));
  graph.Patch(0, 0, 0);
  graph.Patch(0, 1, 1);
  graph.Patch(1, 0, 2);
  Define(rig, graph);
  const auto launch = [&](uint64_t scalar, uint32_t read, uint32_t written) {
    const Ticket ticket = LaunchGraph(rig, graphs.a, kGraph,
                                      {ScalarArg(scalar), MemoryArg(read, Access::kRead, 8), MemoryArg(written, {})});
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    return ticket;
  };
  const Ticket first = launch(3, Handle(0), Handle(1));
  MR_EXPECT(rig.Logs(Line("a0", first, "graph")));
  const auto& kernel = std::get<hal::GraphKernel>(rig.device->built[0].work);
  MR_EXPECT(kernel.params == (std::vector<uint64_t>{3, Address(rig, Handle(0)) + 8, 5}));
  const std::string second_address = std::to_string(Address(rig, Handle(1)) + 8);
  MR_EXPECT(rig.Logs(Line("a0", launch(4, Handle(1), Handle(1)), "graph 0.0=4 0.1=" + second_address)));
  MR_EXPECT(rig.Logs(Line("a0", launch(4, Handle(1), Handle(1)), "graph")));
  // A refused launch applies no patch.
  backend.controls.refuse_graphs = 1;
  launch(9, Handle(1), Handle(1));
  MR_EXPECT(rig.Failures(graphs.a).back().status.driver_code() == 7);
  MR_EXPECT(graphs.IsPoisoned(Handle(1)));
  MR_EXPECT(rig.Completes(graphs.a, rig.Fill(graphs.a, Handle(1), 16)));
  MR_EXPECT(rig.Logs(Line("a0", launch(9, Handle(1), Handle(1)), "graph 0.0=9")));
}

MR_TEST(a_launch_with_wrong_entries_is_malformed) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, graphs.WithEntry(MemoryArg(0, Access::kRead)));
  const std::vector<std::vector<protocol::LaunchArg>> wrong = {
      {},
      {ScalarArg(1)},
      {MemoryArg(Handle(0), Access::kRead, 17)},
      {MemoryArg(0, Access::kRead)},
      {MemoryArg(Handle(0), Access::kRead), ScalarArg(1)},
  };
  for (const auto& entries : wrong) {
    const Ticket ticket = LaunchGraph(rig, graphs.a, kGraph, entries);
    MR_EXPECT(rig.Completes(graphs.a, ticket));
    const Failure last = rig.Failures(graphs.a).back();
    MR_EXPECT(last.last == ticket && last.status.code() == StatusCode::kInternal);
  }
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, kGraph, {MemoryArg(Handle(0), Access::kRead)})));
  MR_EXPECT(rig.Failures(graphs.a).back().last == 4 + wrong.size());
}

MR_TEST(a_poisoned_input_fails_the_launch_and_what_it_overwrites_is_clean_again) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph = graphs.Reading();
  // Overwrites memory 2 before it reads it.
  graph.Node(graphs.id, FillBytes(Handle(2), 16));
  graph.Node(graphs.id, LaunchBytes(kKernel, {MemoryArg(Handle(2), Access::kRead)}), {1});
  Define(rig, graph);
  const Failure poison = graphs.Poison(Handle(0));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  const Failure failed = rig.Failures(graphs.a).back();
  MR_EXPECT(failed.status.code() == StatusCode::kUpstream && failed.cause == poison.id);
  MR_EXPECT(graphs.IsPoisoned(Handle(1)));
  MR_EXPECT(rig.Completes(graphs.a, rig.Fill(graphs.a, Handle(0), 16)));
  graphs.Poison(Handle(2));
  graphs.Poison(Handle(1));
  const Ticket launched = LaunchGraph(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, launched));
  MR_EXPECT(rig.Failures(graphs.a).back().last < launched);
  MR_EXPECT(!graphs.IsPoisoned(Handle(1)));
}

MR_TEST(memory_of_an_entry_counts_as_read_and_written) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes graph;
  graph.Node(graphs.id, LaunchBytes(kKernel, {MemoryArg(0, Access::kRead), MemoryArg(0, Access::kWrite)}));
  graph.Patch(0, 0, 0);
  graph.Patch(0, 1, 1);
  Define(rig, graph);
  const auto launch = [&](uint32_t from, uint32_t to) {
    MR_EXPECT(rig.Completes(
        graphs.a, LaunchGraph(rig, graphs.a, kGraph, {MemoryArg(from, Access::kRead), MemoryArg(to, Access::kWrite)})));
  };
  graphs.Poison(Handle(0));
  launch(Handle(0), Handle(1));
  MR_EXPECT(graphs.IsPoisoned(Handle(1)));
  launch(Handle(2), Handle(1));
  MR_EXPECT(!graphs.IsPoisoned(Handle(1)));
  launch(Handle(2), Handle(0));
  MR_EXPECT(!graphs.IsPoisoned(Handle(0)));
}

MR_TEST(kernels_that_cannot_run_fail_every_launch_with_their_node) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  GraphBytes failed = graphs.Reading();
  failed.Node(graphs.id, LaunchBytes(Handle(1), {}));
  Define(rig, failed);
  rig.channel->FailKernel(Handle(1), Status(StatusCode::kCompile, "refused by the test"));
  for (int n = 0; n < 2; ++n) MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  auto failures = rig.Failures(graphs.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].last == failures[0].first + 1 && failures[0].status.code() == StatusCode::kCompile);
  MR_EXPECT(failures[0].kernel == Handle(1) && failures[0].node == 1);
  MR_EXPECT(graphs.IsPoisoned(Handle(1)));

  GraphBytes wide;
  wide.Node(graphs.id, LaunchBytes(kKernel, {}, 1));
  wide.Node(graphs.id, LaunchBytes(kKernel, {}, 2000));
  Define(rig, wide, Handle(1));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, Handle(1))));
  const Failure beyond = rig.Failures(graphs.a).back();
  MR_EXPECT(beyond.status.code() == StatusCode::kLaunchFailed && beyond.node == 1);
  MR_EXPECT(beyond.requested == 2000 && beyond.limit == 1024);
  MR_EXPECT_EQ(Count(rig, "builds a graph of 2"), 0);
}

MR_TEST(memory_that_could_not_be_allocated_fails_the_launch) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  backend.controls.free_bytes = 8;
  rig.Alloc(graphs.a, Handle(4), 16);
  GraphBytes graph;
  graph.Node(graphs.id, FillBytes(Handle(4), 16));
  Define(rig, graph);
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  const auto failures = rig.Failures(graphs.a);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[1].status.code() == StatusCode::kUpstream && failures[1].cause == failures[0].id);
}

MR_TEST(host_memory_must_be_page_locked_where_the_device_needs_that) {
  RecordingBackend backend;
  backend.controls.needs_locked_memory = true;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  std::array<std::byte, 16> host{};
  const auto copying = [&](uint32_t handle) {
    GraphBytes graph;
    graph.Node(graphs.id, RecordBytes(protocol::CopyRecord{.dst_handle = Handle(0),
                                                           .src_handle = handle,
                                                           .src_space = static_cast<uint16_t>(MemorySpace::kHost),
                                                           .dst_device = graphs.id,
                                                           .src_device = graphs.id,
                                                           .bytes = 16}));
    return graph;
  };
  Define(rig, copying(Handle(0)));
  const Ticket locked = LaunchGraph(rig, graphs.a);
  MR_EXPECT(rig.Parks(graphs.a, ParkReason::kPin));
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, true).ok());
  MR_EXPECT(rig.Completes(graphs.a, locked));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  const auto* const copy = std::get_if<hal::GraphCopy>(&rig.device->built[0].work);
  MR_EXPECT(copy != nullptr && copy->src == host.data() && copy->host.src != nullptr);
  MR_EXPECT(rig.channel->RegisterHost(Handle(1), host, false).ok());
  Define(rig, copying(Handle(1)), Handle(1));
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a, Handle(1))));
  MR_EXPECT(rig.Failures(graphs.a).back().status.code() == StatusCode::kState);
}

MR_TEST(a_variable_is_no_parameter_and_one_that_is_not_there_is_ignored) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  const auto variable = [](uint32_t handle, Access access) {
    protocol::LaunchArg arg = MemoryArg(handle, access);
    arg.kind = static_cast<uint8_t>(protocol::ArgKind::kVariable);
    return arg;
  };
  GraphBytes graph;
  graph.Node(graphs.id, LaunchBytes(kKernel, {variable(Handle(8), Access::kRead), ScalarArg(0),
                                              variable(Handle(9), Access::kWrite), ScalarArg(6)}));
  graph.Patch(0, 1, 0);
  graph.Patch(0, 3, 1);
  Define(rig, graph);
  const Ticket first = LaunchGraph(rig, graphs.a, kGraph, {ScalarArg(1), ScalarArg(2)});
  MR_EXPECT(rig.Parks(graphs.a, ParkReason::kPoint));
  rig.channel->FailVariable(Handle(8), 16, Channel::ReserveFailure());
  MR_EXPECT(rig.channel->LoadModule(1, {}).ok());
  MR_EXPECT(rig.channel->BindVariable(Handle(9), 1, "counts", 16).ok());
  MR_EXPECT(rig.Completes(graphs.a, first));
  MR_EXPECT(std::get<hal::GraphKernel>(rig.device->built[0].work).params == (std::vector<uint64_t>{1, 2}));
  const Ticket second = LaunchGraph(rig, graphs.a, kGraph, {ScalarArg(1), ScalarArg(3)});
  MR_EXPECT(rig.Completes(graphs.a, second) && rig.Logs(Line("a0", second, "graph 0.1=3")));
  MR_EXPECT(rig.Failures(graphs.a).empty());
  // The variable that it writes is poisoned when it fails.
  backend.controls.completes_at_once = false;
  const Ticket third = LaunchGraph(rig, graphs.a, kGraph, {ScalarArg(1), ScalarArg(3)});
  MR_EXPECT(rig.Logs(Line("a0", third, "graph")));
  rig.Backend(0).sink().Failed(third, {.status = Status(StatusCode::kLaunchFailed, "by the test"), .node = 0});
  rig.Backend(0).Complete(third);
  backend.controls.completes_at_once = true;
  MR_EXPECT(graphs.IsPoisoned(Handle(9)));
}

MR_TEST(a_launch_fails_when_the_blocking_calls_thread_cannot_be_started_and_the_next_one_builds) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, graphs.Reading());
  {
    const RefusedThreads refused("mr-blocking");
    MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
    MR_EXPECT_EQ(refused.count(), 1);
  }
  const auto failures = rig.Failures(graphs.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].status.code() == StatusCode::kLaunchFailed && failures[0].status.driver_code() == EAGAIN);
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  MR_EXPECT_EQ(rig.Failures(graphs.a).size(), size_t{1});
}

MR_TEST(memory_that_was_freed_although_a_graph_names_it_fails_the_launch) {
  RecordingBackend backend;
  GraphRig graphs(backend);
  Rig& rig = graphs.rig;
  Define(rig, graphs.Reading());
  MR_EXPECT(rig.Completes(graphs.a, LaunchGraph(rig, graphs.a)));
  rig.Free(graphs.a, Handle(0));
  const Ticket launched = LaunchGraph(rig, graphs.a);
  MR_EXPECT(rig.Completes(graphs.a, launched));
  MR_EXPECT(rig.Failures(graphs.a).back().status.code() == StatusCode::kInternal);
  MR_EXPECT_EQ(Count(rig, Line("a0", launched, "graph")), 0);
}

}  // namespace
}  // namespace millrace::testing
