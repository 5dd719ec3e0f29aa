// Graphs on the CUDA backend: on the fake driver, and unchanged on a GPU. The rules G1 to G8 are in hal/graph.h.
//
//   cuda_graph_test                    on the fake driver
//   cuda_graph_test cuda_kernels.cubin on the first GPU
#include <array>
#include <random>
#include <vector>

#include "cuda_fixture.h"
#include "cuda_graph_stream.h"
#include "graph_support.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT
using Kind = hal::GraphCondition::Kind;

// G1, G2, G4.
MR_TEST(AChainRunsInOrderAndPatchesHoldFromTheirLaunchOn) {
  Opened opened(0);
  auto affine = opened.Load("affine");
  Pinned word(*opened.device, 4);
  auto* const at = word.As<unsigned>();
  Gate gate(opened);
  Nodes nodes(*opened.device);
  for (unsigned i = 0; i < 100; ++i) nodes.Then(KernelNode(affine, {1, 1, 1}, at, 3u, i));
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  unsigned expected = 1;
  const auto run = [&](unsigned first, unsigned factor) {
    for (unsigned i = 0; i < 100; ++i) expected = expected * (i == 0 ? factor : 3) + (i == 0 ? first : i);
  };
  *at = 1;
  MR_EXPECT(gate.Launch(*lane.stream, ++lane.last).ok());
  MR_EXPECT(lane.Launch(*graph).ok());
  MR_EXPECT(lane.Launch(*graph, {{0, 2, 50}}).ok());
  MR_EXPECT(lane.Launch(*graph, {{0, 1, 7}, {0, 2, 60}}).ok());
  MR_EXPECT(lane.Launch(*graph).ok());
  run(0, 3);
  run(50, 3);
  run(60, 7);
  run(60, 7);
  lane.Launch(affine, at, 5u, 1u);
  expected = expected * 5 + 1;
  gate.Open();
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(*at, expected);
}

MR_TEST(AnUploadRunsNothingAndTheFirstLaunchHasItsPatches) {
  Opened opened(0);
  auto affine = opened.Load("affine");
  Pinned word(*opened.device, 4);
  auto* const at = word.As<unsigned>();
  Nodes nodes(*opened.device);
  nodes.Then(KernelNode(affine, {1, 1, 1}, static_cast<unsigned*>(nullptr), 3u, 0u));
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  *at = 5;
  MR_EXPECT(lane.stream->UploadGraph(++lane.last, *graph).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(*at, 5u);
  MR_EXPECT(lane.Launch(*graph, {{0, 0, Bits(at)}, {0, 2, 4}}).ok());
  MR_EXPECT(lane.stream->UploadGraph(++lane.last, *graph).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(*at, 19u);
  if (!OnFake()) return;
  FailCalls("cuGraphUpload:1:2");
  MR_EXPECT(lane.stream->UploadGraph(lane.last + 1, *graph).code() == StatusCode::kOutOfMemory);
  FailCalls("");
}

MR_TEST(CopiesAndFillsOfAllSizesAndShapes) {
  Opened opened(0);
  Lane lane(opened, 0);
  constexpr uint64_t kBytes = 1 << 16;
  Pinned from(*opened.device, kBytes);
  Pinned to(*opened.device, kBytes);
  auto made = lane.stream->Allocate(++lane.last, 4 * kBytes);
  MR_REQUIRE(made.ok());
  std::byte* const memory = made.value()->address();
  MR_REQUIRE(lane.Drained());
  for (uint64_t i = 0; i < kBytes / 2; ++i) from.As<uint16_t>()[i] = static_cast<uint16_t>(i);
  auto lease = std::make_shared<hal::HostLease>();
  {
    Nodes nodes(*opened.device);
    const uint32_t up = nodes.Add(hal::GraphCopy{memory, from.data, 40000, {nullptr, lease, nullptr}});
    // A matrix of 200 rows and 100 columns, transposed.
    const uint32_t turned =
        nodes.Add(hal::GraphStrided{memory + kBytes, memory, 2, 0, {{100, 400, 2}, {200, 2, 200}}}, {up});
    std::vector<uint32_t> filled;
    for (uint32_t i = 0; i < 4; ++i) {
      filled.push_back(nodes.Add(hal::GraphFill{memory + 2 * kBytes + 64 * i, 1u << i, 0x1122334455667788, 32u >> i}));
    }
    filled.push_back(nodes.Add(hal::GraphFill{memory + 2 * kBytes + 256, 8, 0x7777777777777777, 4}));
    filled.push_back(
        nodes.Add(hal::GraphStrided{memory + 2 * kBytes + 320, nullptr, 4, 9, {{4, 12, 0}, {2, 4, 0}}}, {filled[0]}));
    filled.push_back(nodes.Add(hal::GraphStrided{memory + 2 * kBytes + 384, nullptr, 2, 5, {{8, 2, 0}}}));
    filled.push_back(nodes.Add(hal::GraphFill{nullptr, 4, 0, 0}));
    filled.push_back(nodes.Add(hal::GraphCopy{nullptr, nullptr, 0, {}}, {filled[1], filled[2]}));
    filled.push_back(nodes.Add(hal::GraphEmpty{}, filled));
    nodes.Add(hal::GraphCopy{to.data, memory + kBytes, 40000, {}}, {turned});
    nodes.Add(hal::GraphCopy{to.data + 40000, memory + 2 * kBytes, 400, {}}, {filled.back()});
    auto graph = nodes.Build();
    for (auto& node : nodes.list) node = {};
    MR_EXPECT_EQ(lease.use_count(), 2);
    // A copy may get another slot for reports, which this backend never writes.
    protocol::FaultSlot unused{};
    for (int launch = 0; launch < 3; ++launch) {
      std::memset(to.data, 0, kBytes);
      MR_EXPECT(lane.Launch(*graph, {{up, hal::GraphPatch::kReport, testing::Bits(&unused)}}).ok());
      MR_REQUIRE(lane.Drained());
      for (uint32_t row = 0; row < 100; ++row) {
        for (uint32_t column = 0; column < 200; ++column) {
          MR_EXPECT_EQ(to.As<uint16_t>()[row * 200 + column], column * 100 + row);
        }
      }
      const auto* words = reinterpret_cast<const uint64_t*>(to.data + 40000);
      MR_EXPECT_EQ(words[3], 0x8888888888888888u);
      MR_EXPECT_EQ(words[8 + 3], 0x7788778877887788u);
      MR_EXPECT_EQ(words[16 + 3], 0x5566778855667788u);
      MR_EXPECT_EQ(words[24 + 3], 0x1122334455667788u);
      MR_EXPECT_EQ(words[32 + 3], 0x7777777777777777u);
      const auto* strided = reinterpret_cast<const uint32_t*>(to.data + 40320);
      MR_EXPECT(strided[0] == 9 && strided[1] == 9 && strided[3] == 9 && strided[10] == 9 && strided[2] != 9);
      MR_EXPECT_EQ(reinterpret_cast<const uint16_t*>(to.data + 40384)[7], 5u);
    }
  }
  MR_EXPECT_EQ(lease.use_count(), 1);
  MR_EXPECT(lane.stream->Free(++lane.last, std::move(made).value()).ok());
}

MR_TEST(SharedMemoryCooperativeKernelsAndGridsWithoutBlocks) {
  Opened opened(0);
  auto sum = opened.Load("shared_sum");
  auto meet = opened.Load("meet");
  Pinned words(*opened.device, 64);
  auto* const at = words.As<unsigned>();
  constexpr int kNumbers = 25000;  // More than the default limit allows.
  Nodes nodes(*opened.device);
  hal::GraphKernel large = KernelNode(sum, {1, 1, 1}, at, kNumbers);
  large.shared_bytes = kNumbers * 4;
  nodes.Then(std::move(large));
  hal::GraphKernel together = KernelNode(meet, {4, 1, 1}, at + 1);
  together.is_cooperative = true;
  nodes.Then(std::move(together));
  nodes.Then(KernelNode(sum, {0, 1, 1}, at + 2, 5));
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  for (int launch = 0; launch < 3; ++launch) {
    at[0] = at[1] = 0;
    MR_EXPECT(lane.Launch(*graph, {{2, 1, 6}}).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(at[0], kNumbers / 2 * (kNumbers - 1u));
    MR_EXPECT_EQ(at[1], 4u);
    MR_EXPECT_EQ(at[2], 0u);
  }
}

// G3.
MR_TEST(StreamsLaunchOneGraphInTurnManyTimes) {
  Opened opened(0);
  auto affine = opened.Load("affine");
  Pinned word(*opened.device, 4);
  auto* const at = word.As<unsigned>();
  unsigned expected = 0;
  Nodes nodes(*opened.device);
  for (unsigned i = 0; i < 5; ++i) nodes.Then(KernelNode(affine, {1, 1, 1}, at, 3u, i));
  auto graph = nodes.Build();
  Lane one(opened, 0);
  Lane two(opened, 1);
  Lane* const lanes[] = {&one, &two};
  for (unsigned launch = 0; launch < 300; ++launch) {
    Lane& lane = *lanes[launch % 2];
    Lane& before = *lanes[(launch + 1) % 2];
    if (launch > 0) MR_REQUIRE(lane.stream->Wait(++lane.last, *before.stream, before.last).ok());
    MR_EXPECT(lane.Launch(*graph, {{2, 2, launch}}).ok());
    for (unsigned i = 0; i < 5; ++i) expected = expected * 3 + (i == 2 ? launch : i);
  }
  MR_REQUIRE(one.Drained() && two.Drained());
  MR_EXPECT_EQ(*at, expected);
  for (unsigned launch = 0; launch < 10'000; ++launch) MR_REQUIRE(one.Launch(*graph).ok());
  MR_REQUIRE(one.Drained());
}

// G5. On a GPU this needs two.
MR_TEST(EachNodeRunsOnItsOwnDevice) {
  if (Cuda().Enumerate().devices.size() < 2) {
    std::printf("  skipped: this machine has one GPU\n");
    return;
  }
  Opened other(1);
  Opened opened(0);
  auto here = opened.Load("affine");
  auto there = other.Load("affine");
  Pinned word(*opened.device, 4);
  auto* const at = word.As<unsigned>();
  Lane elsewhere(other, 0);
  MR_REQUIRE(other.device->BindChannelThread().ok());
  auto remote = other.device->AllocateInterprocess(4096);
  MR_REQUIRE(remote.ok());
  MR_REQUIRE(opened.device->BindChannelThread().ok());
  auto local = opened.device->AllocateInterprocess(4096);
  MR_REQUIRE(local.ok());
  Nodes nodes(*opened.device);
  nodes.Then(KernelNode(here, {1, 1, 1}, at, 10u, 1u));
  nodes.Add(KernelNode(there, {1, 1, 1}, at, 10u, 2u), {0}, other.device.get());
  nodes.Then(KernelNode(here, {1, 1, 1}, at, 10u, 3u));
  nodes.Add(hal::GraphFill{remote.value()->address(), 1, 6, 4096}, {}, other.device.get());
  nodes.Then(hal::GraphPeerCopy{{local.value()->address(), opened.device.get(), remote.value()->address(),
                                 other.device.get(), 4096, protocol::PeerRoute::kDirect}});
  nodes.Then(hal::GraphCopy{word.data, local.value()->address(), 1, {}});
  auto graph = nodes.Build();
  // The last copy and the kernels use the same word.
  nodes.list[5].after = {2, 4};
  graph = nodes.Build();
  Lane lane(opened, 1);
  for (int launch = 0; launch < 5; ++launch) {
    *at = 0;
    MR_EXPECT(lane.Launch(*graph).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(*at, (123u & ~0xffu) | 6u);
  }
}

// On a driver before CUDA 12.4 there are none.
MR_TEST(ConditionsChooseAndRepeatTheirBodies) {
  Opened opened(0);
  auto affine = opened.Load("affine");
  Pinned memory(*opened.device, 256);
  auto* const values = memory.As<int32_t>();
  auto* const sums = memory.As<unsigned>() + 16;
  const auto add = [&](auto* word, unsigned term) { return KernelNode(affine, {1, 1, 1}, word, 1u, term); };
  const auto body = [&](unsigned sum) {
    Nodes nodes(*opened.device);
    nodes.Then(add(&sums[sum], 1));
    return nodes;
  };
  // while (values[0]) { --values[0]; if (values[1]) sums[0] += 1 else sums[1] += 1; values[2] = 3;
  //                     while (values[2]) { --values[2]; sums[2] += 1; } }
  Nodes innermost(*opened.device);
  innermost.Add(add(&values[2], unsigned(-1)));
  innermost.Add(add(&sums[2], 1));
  Nodes loop(*opened.device);
  loop.Add(add(&values[0], unsigned(-1)));
  loop.Add(Condition(Kind::kIf, &values[1], {body(0), body(1)}));
  loop.Add(KernelNode(affine, {1, 1, 1}, &values[2], 0u, 3u), {0, 1});
  loop.Add(Condition(Kind::kWhile, &values[2], {innermost}), {2});
  Nodes nodes(*opened.device);
  nodes.Add(Condition(Kind::kWhile, &values[0], {loop}));
  nodes.Add(Condition(Kind::kSwitch, &values[3], {body(3), body(4), Nodes(*opened.device)}));
  nodes.Add(Condition(Kind::kIf, &values[1], {body(5)}));
  nodes.Add(add(&sums[6], 1), {0, 1, 2});
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  const auto run = [&](std::array<int32_t, 4> set) {
    std::copy(set.begin(), set.end(), values);
    MR_EXPECT(lane.Launch(*graph).ok());
    MR_EXPECT(lane.Drained());
  };
  run({0, 0, 0, 0});
  run({5, 1, 0, 1});
  run({2, 0, 0, 2});
  run({0, -1, 0, -1});
  run({0, 0, 0, 3});
  const unsigned expected[] = {5, 2, 21, 1, 1, 2, 5};
  for (unsigned i = 0; i < 7; ++i) MR_EXPECT_EQ(sums[i], expected[i]);
}

// G1: what a random graph does equals the same work in one stream.
MR_TEST(RandomGraphsEqualTheSameWorkInOneStream) {
  Opened opened(0);
  auto mix = opened.Load("mix");
  Pinned memory(*opened.device, 128);
  auto* const words = memory.As<unsigned>();
  unsigned* const expected = words + 16;
  Lane lane(opened, 0);
  Lane reference(opened, 1);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto program = RandomProgram(random, 1 + random() % 60, 2 + random() % 14);
    Nodes nodes(*opened.device);
    for (const auto& [to, one, two, after] : program) nodes.Add(KernelNode(mix, {1, 1, 1}, words, to, one, two), after);
    auto graph = nodes.Build();
    for (int launch = 0; launch < 2; ++launch) {
      MR_EXPECT(lane.Launch(*graph).ok());
      for (const auto& [to, one, two, after] : program) reference.Launch(mix, expected, to, one, two);
    }
    MR_REQUIRE(lane.Drained() && reference.Drained());
    MR_EXPECT(std::equal(words, words + 16, expected));
  }
}

MR_TEST(FailedCallsLeaveNothingBehind) {
  if (!OnFake()) return;  // Only the fake driver fails on request.
  Opened opened(0);
  auto affine = opened.Load("affine");
  Pinned word(*opened.device, 4);
  auto* const at = word.As<unsigned>();
  Nodes nodes(*opened.device);
  for (unsigned i = 1; i <= 2; ++i) nodes.Then(KernelNode(affine, {1, 1, 1}, at, 10u, i));
  const auto code = [&](const char* failure) {
    FailCalls(failure);
    auto built = opened.device->BuildGraph(nodes.list);
    FailCalls("");
    return built.status().code();
  };
  MR_EXPECT(code("cuGraphCreate:1:2") == StatusCode::kOutOfMemory);
  MR_EXPECT(code("cuGraphAddKernelNode:2:2") == StatusCode::kOutOfMemory);
  MR_EXPECT(code("cuGraphInstantiateWithFlags:1:2") == StatusCode::kOutOfMemory);
  MR_EXPECT(code("cuGraphAddKernelNode:1:500") == StatusCode::kUnsupported);
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  *at = 0;
  // G4: a launch that fails at the call applies none of its patches, wherever it fails.
  for (const char* failure :
       {"cuGraphExecKernelNodeSetParams:1:2", "cuGraphExecKernelNodeSetParams:2:2", "cuGraphLaunch:1:2"}) {
    FailCalls(failure);
    MR_EXPECT(lane.Launch(*graph, {{0, 2, 7}, {1, 2, 8}, {0, 2, 9}}).code() == StatusCode::kOutOfMemory);
    FailCalls("");
    MR_EXPECT(lane.Launch(*graph).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(*at % 100, 12u);
  }
  // The ticket of a failed launch is open.
  MR_EXPECT(lane.Launch(*graph, {{0, 2, 7}}).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(*at % 100, 72u);
}

// G1, G4.
MR_TEST(ABodyOnAnotherDeviceIsRefused) {
  if (Cuda().Enumerate().devices.size() < 2) {
    std::printf("  skipped: this machine has one GPU\n");
    return;
  }
  Opened other(1);
  Opened opened(0);
  Pinned value(*opened.device, 4);
  Nodes body(*other.device);
  body.Then(hal::GraphEmpty{});
  Nodes nodes(*opened.device);
  nodes.Then(Condition(Kind::kIf, value.As<int32_t>(), {body}));
  MR_EXPECT(opened.device->BuildGraph(nodes.list).status().code() == StatusCode::kUnsupported);
}

// Rule 9. Loses the device, so it comes last.
MR_TEST(AFaultInAGraphLosesTheDevice) {
  if (!OnFake()) return;  // A GPU would be lost for the tests that follow in this process.
  Opened opened(0);
  auto affine = opened.Load("affine");
  Nodes nodes(*opened.device);
  nodes.Then(KernelNode(affine, {1, 1, 1}, static_cast<unsigned*>(nullptr), 1u, 1u));
  auto graph = nodes.Build();
  auto stream = opened.NewStream(0);
  FailCalls("kernel:1:700");
  // The device may be lost before the call has recorded its event.
  const Status launched = stream->LaunchGraph(1, {graph.get(), {}});
  MR_EXPECT(launched.ok() || launched.code() == StatusCode::kDeviceLost);
  MR_EXPECT(Eventually([&] { return stream->Resolve(1).status().code() == StatusCode::kDeviceLost; }));
  FailCalls("");
  MR_EXPECT(stream->LaunchGraph(2, {graph.get(), {}}).code() == StatusCode::kDeviceLost);
  MR_EXPECT(opened.device->BuildGraph(nodes.list).status().code() == StatusCode::kDeviceLost);
}

}  // namespace
