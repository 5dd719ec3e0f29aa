// Launches on the CPU backend whose kernels launch kernels: completeness, order, completion, and refused launches.
#include <array>
#include <atomic>
#include <vector>

#include "cpu/dynamic_parallelism.h"
#include "cpu_support.h"

namespace millrace {
namespace {

std::shared_ptr<hal::Kernel> LoadLaunching(hal::Device& device, const char* entry) {
  hal::KernelRequest request = Request(KernelPath(), entry);
  request.is_launching = true;
  return device.LoadKernel(request).value();
}

// A lane whose launches have a fault slot.
struct LaunchingLane : Lane {
  using Lane::Lane;

  void Go(const std::shared_ptr<hal::Kernel>& kernel, uint32_t blocks, void* words, uint32_t number) {
    Launch(kernel, {blocks, 1, 1}, words, static_cast<void*>(nullptr), number, slot.get(), fault_word.get());
  }

  std::unique_ptr<protocol::FaultSlot> slot = std::make_unique<protocol::FaultSlot>();
  std::unique_ptr<uint32_t> fault_word = std::make_unique<uint32_t>(0);
};

MR_TEST(AnythingThatIsLaunchedRunsBeforeTheLaunchIsOver) {
  for (uint32_t threads : {1u, 2u, 4u}) {
    auto device = OpenDevice(threads);
    auto tree = LoadLaunching(*device, "tree");
    std::array<std::atomic<uint32_t>, 8> counts{};
    LaunchingLane lane(*device);
    lane.Go(tree, 3, counts.data(), 6);
    MR_REQUIRE(lane.Drained());
    // Two grids of two blocks a block.
    uint32_t expected = 3;
    for (int level = 6; level >= 0; --level, expected *= 4) {
      MR_EXPECT_EQ(counts[static_cast<size_t>(level)].load(), expected);
    }
    MR_EXPECT_EQ(*lane.fault_word, 0u);
  }
}

MR_TEST(FamiliesOfManyStreamsShareThePool) {
  auto device = OpenDevice(3);
  auto tree = LoadLaunching(*device, "tree");
  auto busy = LoadKernel(*device, "busy");
  std::vector<std::array<std::atomic<uint32_t>, 8>> counts(4);
  std::vector<std::atomic<uint32_t>> others(20);
  std::vector<LaunchingLane> lanes;
  for (int32_t i = 0; i < 4; ++i) lanes.emplace_back(*device, -i % 2);
  for (uint32_t launch = 0; launch < 5; ++launch) {
    for (size_t i = 0; i < lanes.size(); ++i) {
      lanes[i].Go(tree, 2, counts[i].data(), 3);
      lanes[i].Launch(busy, {20, 1, 1}, others.data());
    }
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    MR_REQUIRE(lanes[i].Drained());
    MR_EXPECT_EQ(counts[i][3].load(), 10u);
    MR_EXPECT_EQ(counts[i][0].load(), 640u);
  }
  for (auto& count : others) MR_EXPECT_EQ(count.load(), 20u);
}

MR_TEST(AKernelThatLaunchesItselfForTheEndKeepsNeitherStackNorMemory) {
  auto device = OpenDevice(2);
  auto rounds = LoadLaunching(*device, "rounds");
  uint32_t count = 0;
  LaunchingLane lane(*device);
  // Far more than may be pending at once.
  constexpr uint32_t kRounds = 10 * cpu::kMaxPendingLaunches;
  lane.Go(rounds, 1, &count, kRounds);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(count, kRounds);
  MR_EXPECT_EQ(*lane.fault_word, 0u);
}

MR_TEST(StreamsOfKernelsKeepTheirOrder) {
  constexpr uint32_t kBlocks = 6;
  constexpr uint32_t kRoom = 16;
  auto device = OpenDevice(4);
  auto orders = LoadLaunching(*device, "orders");
  std::vector<uint32_t> words(kRoom * (kBlocks + 2));
  LaunchingLane lane(*device);
  lane.Go(orders, kBlocks, words.data(), kRoom);
  MR_REQUIRE(lane.Drained());
  for (uint32_t list = 0; list < kBlocks + 2; ++list) {
    const uint32_t* at = &words[list * kRoom];
    MR_EXPECT_EQ(at[0], 8u);
    for (uint32_t i = 0; i < 8; ++i) MR_EXPECT_EQ(at[1 + i], i);
  }
}

MR_TEST(ARefusedLaunchIsReportedAndTheOthersRun) {
  auto device = OpenDevice(2);
  auto beyond = LoadLaunching(*device, "beyond");
  std::array<std::atomic<uint32_t>, 8> counts{};
  LaunchingLane lane(*device);
  lane.Go(beyond, 1, counts.data(), 0);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(counts[0].load(), 1u);
  MR_EXPECT_EQ(*lane.fault_word, 1u);
  MR_EXPECT_EQ(lane.slot->state, hal::kFaultWritten);
  MR_EXPECT_EQ(lane.slot->dimension, static_cast<uint32_t>(cpu::Refusal::kThreads));
  MR_EXPECT_EQ(lane.slot->index, 2000);
  MR_EXPECT_EQ(lane.slot->limit, 1024u);
}

MR_TEST(WhoLaunchesManyRunsSomeBeforeItLaunchesMore) {
  for (uint32_t threads : {1u, 3u}) {
    auto device = OpenDevice(threads);
    auto flood = LoadLaunching(*device, "flood");
    std::array<std::atomic<uint32_t>, 8> counts{};
    LaunchingLane lane(*device);
    lane.Go(flood, 100, counts.data(), 1000);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(counts[0].load(), 100000u);
    MR_EXPECT_EQ(*lane.fault_word, 0u);
    lane.Go(flood, 1, counts.data(), cpu::kMaxPendingLaunches + 5);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(counts[0].load(), 100000u + cpu::kMaxPendingLaunches);
    MR_EXPECT_EQ(lane.slot->dimension, static_cast<uint32_t>(cpu::Refusal::kPending));
  }
}

}  // namespace
}  // namespace millrace
