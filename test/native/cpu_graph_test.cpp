// Graphs on the CPU backend; cpu_graph_control_test.cpp has conditions, failures and cancelling. The rules G1 to G8 are
// in hal/graph.h.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <set>
#include <vector>

#include "cpu_support.h"
#include "graph_support.h"

static std::atomic<uint64_t> allocations{0};

// Not inlined: the compiler would report that `free` gets what `new` made.
__attribute__((noinline)) void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const made = std::malloc(bytes == 0 ? 1 : bytes);
  MR_CHECK(made != nullptr);
  return made;
}
__attribute__((noinline)) void operator delete(void* address) noexcept {
  std::free(address);
}
__attribute__((noinline)) void operator delete(void* address, size_t) noexcept {
  std::free(address);
}

namespace millrace {
namespace {

using testing::KernelNode;
using testing::Nodes;
using Word = std::atomic<uint32_t>;

// G1, G2.
MR_TEST(AChainRunsInOrderWithinItsStream) {
  for (const bool is_bounded : {false, true}) {
    for (const uint32_t length : {1u, 20u, 1000u}) {
      auto device = OpenDevice(2);
      auto affine = LoadKernel(*device, "affine", is_bounded);
      uint32_t word = 1;
      Nodes nodes(*device);
      uint32_t expected = 7;
      for (uint32_t i = 0; i < length; ++i) nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 3u, i));
      auto graph = nodes.Build();
      Lane lane(*device);
      lane.Launch(affine, {1, 1, 1}, &word, 0u, 7u);
      for (int launch = 0; launch < 3; ++launch) {
        lane.LaunchGraph(*graph);
        for (uint32_t i = 0; i < length; ++i) expected = expected * 3 + i;
      }
      lane.Launch(affine, {1, 1, 1}, &word, 5u, 1u);
      MR_REQUIRE(lane.Drained());
      MR_EXPECT_EQ(word, expected * 5 + 1);
    }
  }
}

// G1.
MR_TEST(IndependentNodesRunAtTheSameTime) {
  for (const uint32_t threads : {2u, 4u}) {
    auto device = OpenDevice(threads);
    auto affine = LoadKernel(*device, "affine");
    auto meet = LoadKernel(*device, "meet");
    Word met{0};
    uint32_t word = 0;
    Nodes nodes(*device);
    nodes.Add(KernelNode(affine, {1, 1, 1}, &word, 1u, 1u));
    // Each waits for all others.
    std::vector<uint32_t> branches;
    for (uint32_t i = 0; i < threads; ++i) {
      branches.push_back(nodes.Add(KernelNode(meet, {1, 1, 1}, &met, threads), {0}));
    }
    nodes.Add(KernelNode(affine, {1, 1, 1}, &word, 10u, 2u), branches);
    auto graph = nodes.Build();
    Lane lane(*device);
    for (uint32_t launch = 1; launch <= 20; ++launch) {
      met.store(0);
      lane.LaunchGraph(*graph);
      MR_REQUIRE(lane.Drained());
      MR_EXPECT_EQ(met.load(), threads);
    }
  }
}

// A helper thread of one launch must not disturb the next one, which uses the same objects.
MR_TEST(ALargeKernelUsesSeveralThreadsAtEveryLaunch) {
  constexpr uint32_t kBlocks = 3000;
  auto device = OpenDevice(3);
  auto busy = LoadKernel(*device, "busy");
  auto slow = LoadKernel(*device, "slow");
  std::vector<Word> counts(kBlocks);
  std::vector<Word> slow_counts(30);
  std::vector<int32_t> threads(30);
  Nodes nodes(*device);
  nodes.Then(KernelNode(busy, {100, 1, 1}, counts.data()));
  nodes.Then(KernelNode(slow, {30, 1, 1}, slow_counts.data(), threads.data()));
  nodes.Then(KernelNode(busy, {kBlocks, 1, 1}, counts.data()));
  nodes.Then(KernelNode(busy, {kBlocks, 1, 1}, counts.data()));
  auto graph = nodes.Build();
  Lane lane(*device);
  constexpr uint32_t kLaunches = 30;
  for (uint32_t launch = 0; launch < kLaunches; ++launch) lane.LaunchGraph(*graph);
  MR_REQUIRE(lane.Drained());
  for (uint32_t i = 0; i < kBlocks; ++i) MR_EXPECT_EQ(counts[i].load(), kLaunches * (i < 100 ? 3 : 2));
  for (const Word& count : slow_counts) MR_EXPECT_EQ(count.load(), kLaunches);
  MR_EXPECT(std::set<int32_t>(threads.begin(), threads.end()).size() > 1);
}

// G4.
MR_TEST(PatchesHoldFromTheirLaunchOn) {
  auto device = OpenDevice(2);
  auto gate = LoadKernel(*device, "gate");
  for (const bool is_bounded : {false, true}) {
    auto affine = LoadKernel(*device, "affine", is_bounded);
    Word open{0};
    uint32_t word = 0;
    Nodes nodes(*device);
    nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 10u, 1u));
    nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 10u, 2u));
    auto graph = nodes.Build();
    Lane lane(*device);
    lane.Launch(gate, {1, 1, 1}, &open);
    lane.LaunchGraph(*graph);
    lane.LaunchGraph(*graph, {{0, 2, 3}});
    lane.LaunchGraph(*graph, {{1, 2, 4}, {0, 1, 100}});
    lane.LaunchGraph(*graph);
    open.store(1);
    MR_REQUIRE(lane.Drained());
    uint32_t expected = 12;
    expected = (expected * 10 + 3) * 10 + 2;
    expected = (expected * 100 + 3) * 10 + 4;
    expected = (expected * 100 + 3) * 10 + 4;
    MR_EXPECT_EQ(word, expected);
  }
}

MR_TEST(CopiesAndFillsOfAllSizesAndShapes) {
  auto device = OpenDevice(2);
  Lane lane(*device);
  constexpr uint64_t kLarge = 5'000'000;
  std::vector<uint64_t> from(kLarge / 8);
  std::vector<uint64_t> to(kLarge / 8);
  std::vector<uint64_t> filled(kLarge / 8);
  std::vector<std::array<uint64_t, 4>> small(4);
  std::vector<uint16_t> transposed(300 * 200);
  std::vector<uint16_t> matrix(300 * 200);
  std::vector<uint32_t> columns(100);
  const auto bytes = [](auto& of) { return reinterpret_cast<std::byte*>(of.data()); };
  Nodes nodes(*device);
  for (uint32_t i = 0; i < 4; ++i) {
    nodes.Add(hal::GraphFill{bytes(small[i]), 1u << i, 0x1122334455667788, 32u >> i});
  }
  nodes.Add(hal::GraphFill{bytes(filled), 8, 0x0102030405060708, filled.size()});
  const uint32_t copy = nodes.Add(hal::GraphCopy{bytes(to), bytes(from), kLarge, {}});
  nodes.Add(hal::GraphCopy{bytes(from), bytes(small[3]), 8, {}}, {copy, 3});
  nodes.Add(hal::GraphPeerCopy{{bytes(from) + 8, device.get(), bytes(small[3]), device.get(), 8,
                                protocol::PeerRoute::kDirect}},
            {copy, 3});
  nodes.Add(hal::GraphStrided{bytes(transposed), bytes(matrix), 2, 0, {{200, 600, 2}, {300, 2, 400}}});
  nodes.Add(hal::GraphStrided{bytes(columns), nullptr, 4, 9, {{10, 40, 0}, {3, 4, 0}}});
  nodes.Then(hal::GraphStrided{bytes(columns) + 200, nullptr, 4, 8, {{50, 4, 0}}});
  nodes.Add(hal::GraphFill{nullptr, 4, 0, 0});
  nodes.Add(hal::GraphCopy{nullptr, nullptr, 0, {}});
  auto graph = nodes.Build();
  for (uint32_t launch = 1; launch <= 3; ++launch) {
    for (size_t i = 0; i < from.size(); ++i) from[i] = i * launch;
    for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<uint16_t>(i + launch);
    std::fill(filled.begin(), filled.end(), 0);
    std::fill(columns.begin(), columns.end(), 0);
    lane.LaunchGraph(*graph);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(to[1], uint64_t{launch});
    MR_EXPECT_EQ(to[from.size() - 1], (from.size() - 1) * launch);
    MR_EXPECT_EQ(from[0], 0x1122334455667788u);
    MR_EXPECT_EQ(from[1], 0x1122334455667788u);
    MR_EXPECT_EQ(small[0][3], 0x8888888888888888u);
    MR_EXPECT_EQ(small[1][3], 0x7788778877887788u);
    MR_EXPECT_EQ(small[2][3], 0x5566778855667788u);
    MR_EXPECT_EQ(filled[filled.size() - 1], 0x0102030405060708u);
    for (uint32_t row = 0; row < 200; ++row) {
      for (uint32_t column = 0; column < 300; ++column) {
        MR_EXPECT_EQ(transposed[row * 300 + column], matrix[column * 200 + row]);
      }
    }
    for (uint32_t i = 0; i < 100; ++i) MR_EXPECT_EQ(columns[i], i >= 50 ? 8u : i % 10 < 3 ? 9u : 0u);
  }
}

// G8.
MR_TEST(ALaunchTakesNoMemoryForItsNodes) {
  auto device = OpenDevice(2);
  auto light = LoadKernel(*device, "affine", true);
  auto busy = LoadKernel(*device, "busy");
  uint32_t word = 0;
  std::array<Word, 4> counts{};
  Nodes nodes(*device);
  for (uint32_t i = 0; i < 500; ++i) nodes.Then(KernelNode(light, {1, 1, 1}, &word, 1u, 1u));
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t branch = nodes.Add(KernelNode(busy, {1, 1, 1}, &counts[i]), {499});
    nodes.Add(hal::GraphEmpty{}, {branch});
  }
  auto graph = nodes.Build();
  Lane lane(*device);
  constexpr uint32_t kLaunches = 10'000;
  for (uint32_t launch = 0; launch < 100; ++launch) lane.LaunchGraph(*graph);
  MR_REQUIRE(lane.Drained());
  const uint64_t before = allocations.load();
  for (uint32_t launch = 0; launch < kLaunches; ++launch) {
    lane.LaunchGraph(*graph);
    while (lane.last - lane.stream->Completed() > 64) std::this_thread::yield();
  }
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, 500 * (kLaunches + 100));
  MR_EXPECT_EQ(counts[3].load(), kLaunches + 100);
  // The launch, and now and then a part of a list of the pool, which the schedule fuzzer uses more.
  MR_EXPECT((allocations.load() - before) / kLaunches < 32);
}

// G5.
MR_TEST(EachNodeRunsOnItsOwnDevice) {
  auto home = OpenDevice(2);
  auto other = OpenDevice(2);
  auto whoami = LoadKernel(*home, "whoami");
  auto affine = LoadKernel(*home, "affine");
  std::array<int32_t, 6> threads{};
  uint32_t word = 0;
  for (const bool ends_at_home : {true, false}) {
    Nodes nodes(*home);
    for (uint32_t i = 0; i < 6; ++i) {
      hal::Device* const on = (i % 2 == 0) == ends_at_home ? other.get() : home.get();
      nodes.Add(KernelNode(whoami, {1, 1, 1}, &threads[i]), i == 0 ? std::vector<uint32_t>{} : std::vector{2 * i - 1},
                on);
      nodes.Add(KernelNode(affine, {1, 1, 1}, &word, 1u, 1u), {2 * i}, on);
    }
    auto graph = nodes.Build();
    Lane lane(*home);
    word = 0;
    for (uint32_t launch = 1; launch <= 50; ++launch) lane.LaunchGraph(*graph);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(word, 300u);
    for (uint32_t i = 0; i < 6; i += 2) {
      for (uint32_t k = 1; k < 6; k += 2) MR_EXPECT(threads[i] != threads[k]);
    }
  }
}

// G3.
MR_TEST(StreamsLaunchOneGraphInTurn) {
  auto device = OpenDevice(3);
  auto affine = LoadKernel(*device, "affine");
  uint32_t word = 0;
  uint32_t expected = 0;
  Nodes nodes(*device);
  for (uint32_t i = 0; i < 5; ++i) nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 3u, i));
  auto graph = nodes.Build();
  std::vector<Lane> lanes;
  for (int32_t i = 0; i < 3; ++i) lanes.emplace_back(*device, -i);
  for (uint32_t launch = 0; launch < 300; ++launch) {
    Lane& lane = lanes[launch % 3];
    if (launch > 0) lane.Wait(lanes[(launch - 1) % 3], lanes[(launch - 1) % 3].last);
    lane.LaunchGraph(*graph, {{2, 2, launch}});
    for (uint32_t i = 0; i < 5; ++i) expected = expected * 3 + (i == 2 ? launch : i);
  }
  for (Lane& lane : lanes) MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, expected);
}

MR_TEST(CooperativeAndLaunchingKernelsRunAgain) {
  constexpr uint32_t kBlocks = 6;
  auto device = OpenDevice(2);
  auto circle = LoadKernel(*device, "circle");
  auto request = Request(KernelPath(), "tree");
  request.is_launching = true;
  auto tree = device->LoadKernel(request).value();
  std::array<uint32_t, kBlocks> words{};
  std::array<Word, kBlocks> counts{};
  std::array<Word, 4> levels{};
  std::array<Word, kBlocks> patched{};
  protocol::FaultSlot slot{};
  uint32_t fault = 0;
  void* const unused = nullptr;
  Nodes nodes(*device);
  hal::GraphKernel together = KernelNode(circle, {kBlocks, 1, 1}, words.data(), counts.data(), 3u, 0u);
  together.is_cooperative = true;
  nodes.Add(together);
  nodes.Add(KernelNode(tree, {1, 1, 1}, levels.data(), unused, 2u, &slot, &fault));
  nodes.Add(together, {0, 1});
  auto graph = nodes.Build();
  Lane lane(*device);
  for (uint32_t launch = 0; launch < 20; ++launch) lane.LaunchGraph(*graph);
  lane.LaunchGraph(*graph, {{1, 0, testing::Bits(patched.data())}, {2, 1, testing::Bits(patched.data())}});
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(counts[kBlocks - 1].load(), 41u);
  MR_EXPECT_EQ(levels[0].load(), 20 * 16u);
  MR_EXPECT_EQ(patched[0].load(), 17u);
  MR_EXPECT_EQ(fault, 0u);
}

MR_TEST(ACopyOfWithdrawnHostMemoryIsReported) {
  auto device = OpenDevice(2);
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{3} << 20}) {
    auto lease = std::make_shared<hal::HostLease>();
    protocol::FaultSlot report{};
    uint32_t word = 0;
    std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes);
    Nodes nodes(*device);
    nodes.Then(hal::GraphCopy{to.data(), from.data(), bytes, {nullptr, lease, &report, &word}});
    auto graph = nodes.Build();
    Lane first(*device);
    Lane second(*device);
    first.LaunchGraph(*graph);
    MR_REQUIRE(first.Drained());
    MR_EXPECT(to[bytes - 1] == std::byte{1});
    MR_EXPECT(report.state == 0 && word == 0);
    lease->Withdraw();
    from.assign(bytes, std::byte{2});
    second.LaunchGraph(*graph);
    MR_REQUIRE(second.Drained());
    MR_EXPECT(to[bytes - 1] == std::byte{1});
    MR_EXPECT(report.state == hal::kFaultWritten && word == 1);
    // Another slot holds for the launch that names it, and for later ones.
    report = {};
    protocol::FaultSlot other{};
    first.LaunchGraph(*graph, {{0, hal::GraphPatch::kReport, testing::Bits(&other)}});
    MR_REQUIRE(first.Drained());
    MR_EXPECT(report.state == 0 && other.state == hal::kFaultWritten);
    other = {};
    second.LaunchGraph(*graph);
    MR_REQUIRE(second.Drained());
    MR_EXPECT(report.state == 0 && other.state == hal::kFaultWritten);
  }
}

MR_TEST(AGraphWithoutNodesAndOneThatCannotBeBuilt) {
  auto device = OpenDevice(2);
  auto affine = LoadKernel(*device, "affine");
  Lane lane(*device);
  auto empty = Nodes(*device).Build();
  lane.LaunchGraph(*empty);
  MR_EXPECT(lane.Drained());
  Nodes nodes(*device);
  uint32_t word = 0;
  nodes.Then(KernelNode(affine, {1, 1, 1}, &word, 1u));
  MR_EXPECT(device->BuildGraph(nodes.list).status().code() == StatusCode::kLaunchFailed);
}

// G1: what a random graph does equals the same work in one stream.
MR_TEST(RandomGraphsEqualTheSameWorkInOneStream) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto device = OpenDevice(1 + seed % 3);
    auto other = OpenDevice(2);
    const std::shared_ptr<hal::Kernel> mix[] = {LoadKernel(*device, "mix"), LoadKernel(*device, "mix", true)};
    std::array<uint32_t, 16> words{};
    std::array<uint32_t, 16> expected{};
    const auto program = testing::RandomProgram(random, 1 + random() % 80, 2 + random() % 14);
    Nodes nodes(*device);
    Lane lane(*device);
    Lane reference(*device);
    constexpr uint32_t kLaunches = 5;
    for (const auto& [to, one, two, after] : program) {
      nodes.Add(KernelNode(mix[random() % 2], {1, 1, 1}, words.data(), to, one, two), after,
                seed % 4 == 0 && random() % 3 == 0 ? other.get() : nullptr);
    }
    auto graph = nodes.Build();
    for (uint32_t launch = 0; launch < kLaunches; ++launch) {
      lane.LaunchGraph(*graph);
      for (const auto& [to, one, two, after] : program) {
        reference.Launch(mix[0], {1, 1, 1}, expected.data(), to, one, two);
      }
    }
    MR_REQUIRE(lane.Drained() && reference.Drained());
    MR_EXPECT(words == expected);
  }
}

}  // namespace
}  // namespace millrace
