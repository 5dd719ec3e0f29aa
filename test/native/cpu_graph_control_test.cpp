// Graphs on the CPU backend: conditions, events, kernels that have to stop, and cancelled devices. The rules G1 to G8
// are in hal/graph.h.
#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "cpu_support.h"
#include "graph_support.h"

namespace millrace {
namespace {

using testing::Condition;
using testing::KernelNode;
using testing::Nodes;
using Kind = hal::GraphCondition::Kind;
using Word = std::atomic<uint32_t>;

// G4. A copy or fill of 4 MiB runs on several threads.
MR_TEST(PatchesOfCopiesAndFillsHoldFromTheirLaunchOn) {
  using hal::GraphPatch;
  auto device = OpenDevice(2);
  for (const uint64_t count : {uint64_t{16}, uint64_t{1} << 20}) {
    std::vector<uint32_t> from(count + 1, 1);
    std::vector<uint32_t> one(count + 1);
    std::vector<uint32_t> two(count + 1);
    std::vector<uint32_t> filled(count + 1);
    std::vector<uint32_t> small(3);
    const auto bytes = [](auto& words) { return reinterpret_cast<std::byte*>(words.data()); };
    from[0] = 7;
    Nodes nodes(*device);
    nodes.Add(hal::GraphCopy{bytes(one), bytes(from), count * 4, {}});
    nodes.Add(hal::GraphFill{bytes(filled), 4, 5, count, true});
    auto graph = nodes.Build();
    Lane lane(*device);
    lane.LaunchGraph(*graph);
    lane.LaunchGraph(*graph, {{0, GraphPatch::kDst, testing::Bits(two.data() + 1)},
                              {1, GraphPatch::kDst, testing::Bits(small.data())},
                              {1, GraphPatch::kCount, 2},
                              {1, GraphPatch::kPattern, 6}});
    lane.LaunchGraph(*graph, {{0, GraphPatch::kSrc, testing::Bits(from.data() + 1)}});
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(one[0] == 7 && one[1] == 1 && one[count - 1] == 1 && one[count] == 0);
    MR_EXPECT(two[0] == 0 && two[1] == 1 && two[count] == 1);
    MR_EXPECT(filled[0] == 5 && filled[count - 1] == 5 && filled[count] == 0);
    MR_EXPECT(small == (std::vector<uint32_t>{6, 6, 0}));
    lane.LaunchGraph(*graph, {{1, GraphPatch::kDst, testing::Bits(filled.data() + 1)}, {1, GraphPatch::kCount, count}});
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(filled[0] == 5 && filled[1] == 6 && filled[count] == 6);
  }
}

MR_TEST(ConditionsChooseAndRepeatTheirBodies) {
  auto device = OpenDevice(2);
  for (const bool is_bounded : {false, true}) {
    auto affine = LoadKernel(*device, "affine", is_bounded);
    std::array<int32_t, 4> values{};
    std::array<uint32_t, 8> sums{};
    const auto add = [&](auto* word, uint32_t term) { return KernelNode(affine, {1, 1, 1}, word, 1u, term); };
    const auto body = [&](uint32_t sum, uint32_t term) {
      Nodes nodes(*device);
      nodes.Then(add(&sums[sum], term));
      return nodes;
    };
    // while (values[0]) { --values[0]; if (values[1]) sums[0] += 1 else sums[1] += 1; values[2] = 3;
    //                     while (values[2]) { --values[2]; sums[2] += 1; } }
    Nodes innermost(*device);
    innermost.Add(add(&values[2], uint32_t(-1)));
    innermost.Add(add(&sums[2], 1));
    Nodes loop(*device);
    loop.Add(add(&values[0], uint32_t(-1)));
    loop.Add(Condition(Kind::kIf, &values[1], {body(0, 1), body(1, 1)}));
    loop.Add(KernelNode(affine, {1, 1, 1}, &values[2], 0u, 3u), {0, 1});
    loop.Add(Condition(Kind::kWhile, &values[2], {innermost}), {2});
    Nodes nodes(*device);
    nodes.Add(Condition(Kind::kWhile, &values[0], {loop}));
    nodes.Add(Condition(Kind::kSwitch, &values[3], {body(3, 1), body(4, 1), Nodes(*device)}));
    nodes.Add(Condition(Kind::kIf, &values[1], {body(5, 1)}));
    nodes.Add(add(&sums[6], 1), {0, 1, 2});
    auto graph = nodes.Build();
    Lane lane(*device);
    const auto run = [&](std::array<int32_t, 4> set) {
      values = set;
      lane.LaunchGraph(*graph);
      MR_EXPECT(lane.Drained());
    };
    run({0, 0, 0, 0});
    run({5, 1, 0, 1});
    run({2, 0, 0, 2});
    run({0, -1, 0, -1});
    run({0, 0, 0, 3});
    MR_EXPECT_EQ(sums[0], 5u);
    MR_EXPECT_EQ(sums[1], 2u);
    MR_EXPECT_EQ(sums[2], 21u);
    MR_EXPECT_EQ(sums[3], 1u);
    MR_EXPECT_EQ(sums[4], 1u);
    MR_EXPECT_EQ(sums[5], 2u);
    MR_EXPECT_EQ(sums[6], 5u);
  }
}

// G6.
MR_TEST(AFailedNodeStopsItsLaunchAndTheNextOneRuns) {
  auto device = OpenDevice(2);
  auto affine = LoadKernel(*device, "affine");
  auto overflow = LoadKernel(*device, "overflow");
  std::array<Word, 4> flags{};
  uint32_t word = 0;
  Nodes nodes(*device);
  nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 1u, 1u));
  hal::GraphKernel failing = KernelNode(overflow, {3, 1, 1}, flags.data(), 1u);
  failing.kernel_id = 77;
  nodes.Then(std::move(failing));
  nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 1u, 100u));
  auto graph = nodes.Build();
  Lane lane(*device);
  lane.LaunchGraph(*graph);
  lane.LaunchGraph(*graph, {{1, 1, 9}});
  lane.LaunchGraph(*graph, {{1, 1, 2}});
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, 103u);
  const auto failures = lane.sink->failures();
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT_EQ(failures[0].ticket, 1u);
  MR_EXPECT_EQ(failures[0].node, 1u);
  MR_EXPECT_EQ(failures[0].kernel, 77u);
  MR_EXPECT(failures[0].code == StatusCode::kLaunchFailed);
  MR_EXPECT_EQ(failures[0].report.block_x, 1u);
  MR_EXPECT_EQ(failures[1].ticket, 3u);
  MR_EXPECT_EQ(failures[1].report.block_x, 2u);
}

// G6.
MR_TEST(AFailureInABodyNamesTheOutermostConditionAndEndsItsLoops) {
  auto device = OpenDevice(2);
  auto affine = LoadKernel(*device, "affine");
  auto overflow = LoadKernel(*device, "overflow");
  std::array<Word, 1> flags{};
  int32_t always = 1;
  uint32_t word = 0;
  Nodes inner(*device);
  inner.Then(KernelNode(overflow, {1, 1, 1}, flags.data(), 0u));
  Nodes outer(*device);
  outer.Then(Condition(Kind::kWhile, &always, {inner}));
  Nodes nodes(*device);
  nodes.Then(hal::GraphEmpty{});
  nodes.Then(Condition(Kind::kWhile, &always, {outer}));
  nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 1u, 1u));
  auto graph = nodes.Build();
  Lane lane(*device);
  lane.LaunchGraph(*graph);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(flags[0].load(), 1u);
  MR_EXPECT_EQ(word, 0u);
  MR_REQUIRE(lane.sink->failures().size() == 1);
  MR_EXPECT_EQ(lane.sink->failures()[0].node, 1u);
  always = 0;
  lane.LaunchGraph(*graph);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, 1u);
}

// G7.
MR_TEST(CancellingStopsAGraphInTheMiddle) {
  auto device = OpenDevice(2);
  auto affine = LoadKernel(*device, "affine");
  auto gate = LoadKernel(*device, "gate");
  auto slow = LoadKernel(*device, "slow");
  Word open{0};
  uint32_t word = 0;
  int32_t always = 1;
  std::vector<Word> counts(20000);
  std::vector<int32_t> threads(20000);
  const auto end = [&](Nodes& nodes, const std::function<bool()>& has_begun) {
    nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 1u, 100u));
    auto graph = nodes.Build();
    Lane lane(*nodes.device);
    lane.LaunchGraph(*graph);
    lane.LaunchGraph(*graph);
    MR_EXPECT(testing::Eventually(has_begun));
    nodes.device->Cancel();
    open.store(1);
    MR_EXPECT(testing::Eventually([&] { return !lane.stream->IsBusy(lane.last); }, 10000));
    MR_EXPECT_EQ(lane.stream->Completed(), 0u);
    MR_EXPECT_EQ(word, 0u);
    lane.stream.reset();
    lane.sink.reset();
    graph.reset();
    nodes.device->Close();
  };
  Nodes gated(*device);
  Word begun{0};
  auto meet = LoadKernel(*device, "meet");
  gated.Then(KernelNode(meet, {1, 1, 1}, &begun, 1u));
  gated.Then(KernelNode(gate, {1, 1, 1}, &open));
  end(gated, [&] { return begun.load() == 1; });

  auto second = OpenDevice(2);
  Nodes of_blocks(*second);
  of_blocks.Then(KernelNode(slow, {20000, 1, 1}, counts.data(), threads.data()));
  end(of_blocks, [&] { return counts[0].load() == 1; });
  MR_EXPECT_EQ(counts[19999].load(), 0u);

  for (const bool has_body : {true, false}) {
    auto third = OpenDevice(2);
    begun.store(0);
    Nodes body(*third);
    if (has_body) body.Then(KernelNode(meet, {1, 1, 1}, &begun, 1u));
    Nodes endless(*third);
    endless.Then(KernelNode(meet, {1, 1, 1}, &begun, 1u));
    endless.Then(Condition(Kind::kWhile, &always, {body}));
    end(endless, [&] { return begun.load() >= 1; });
  }
}

// G1, G4.
MR_TEST(EventsAreRecordedBetweenTheNodesAndByTheLaunchThatNamesThem) {
  auto device = OpenDevice(2);
  auto affine = LoadKernel(*device, "affine");
  const auto make = [&] {
    return std::shared_ptr<hal::EventHandle>(std::move(device->CreateEvent(protocol::EventKind::kTiming).value()));
  };
  const auto code = [&](const auto& start, const auto& end) { return device->Elapsed(*start, *end).status().code(); };
  const std::array built{make(), make()};
  uint32_t word = 0;
  Nodes nodes(*device);
  nodes.Then(hal::GraphRecord{built[0]});
  for (uint32_t i = 0; i < 50; ++i) nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 1u, 1u));
  nodes.Then(hal::GraphRecord{built[1]});
  auto graph = nodes.Build();
  Lane lane(*device);
  MR_EXPECT(code(built[0], built[1]) == StatusCode::kState);
  lane.LaunchGraph(*graph);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(device->Elapsed(*built[0], *built[1]).value() > 0);
  const double first = device->Elapsed(*built[0], *built[1]).value();
  const std::array given{make(), make()};
  lane.LaunchGraph(*graph, {{0, hal::GraphPatch::kEvent, testing::Bits(given[0].get())},
                            {51, hal::GraphPatch::kEvent, testing::Bits(given[1].get())}});
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(device->Elapsed(*given[0], *given[1]).value() > 0);
  MR_EXPECT(device->Elapsed(*built[1], *given[0]).value() > 0);
  MR_EXPECT_EQ(device->Elapsed(*built[0], *built[1]).value(), first);
  MR_EXPECT_EQ(word, 100u);
}

}  // namespace
}  // namespace millrace
