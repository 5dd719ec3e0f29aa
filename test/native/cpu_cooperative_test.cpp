// Cooperative launches of the CPU backend: each block has a thread, and blocks wait for each other.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "cpu_support.h"
#include "refused_threads.h"

namespace millrace {
namespace {

// The result of the kernel `circle`.
std::vector<uint32_t> Circle(uint32_t blocks, uint32_t turns, bool leaves) {
  std::vector<uint32_t> words(blocks);
  for (uint32_t block = 0; block < blocks; ++block) words[block] = block;
  for (uint32_t turn = 0; turn < turns; ++turn) {
    const std::vector<uint32_t> before = words;
    for (uint32_t block = 0; block < blocks; ++block) {
      if (!leaves || turn < block) words[block] += before[(block + 1) % blocks];
    }
  }
  return words;
}

struct Round {
  explicit Round(uint32_t blocks) : words(blocks), counts(blocks) {}
  Status Launch(Lane& lane, const std::shared_ptr<hal::Kernel>& circle, uint32_t turns, bool leaves = false) {
    const hal::Dim3 grid{static_cast<uint32_t>(words.size()), 1, 1};
    return lane.LaunchTogether(circle, grid, words.data(), counts.data(), turns, leaves ? 1u : 0u);
  }
  std::vector<uint32_t> words;
  std::vector<std::atomic<uint32_t>> counts;
};

MR_TEST(BlocksOfAGridWaitForEachOther) {
  auto device = OpenDevice(2);
  auto circle = LoadKernel(*device, "circle");
  Lane lane(*device);
  for (uint32_t blocks : {1u, 2u, 7u, 100u}) {
    for (uint32_t turns : {0u, 1u, 20u}) {
      Round round(blocks);
      MR_REQUIRE(round.Launch(lane, circle, turns).ok());
      MR_REQUIRE(lane.Drained());
      MR_EXPECT(round.words == Circle(blocks, turns, false));
      for (auto& count : round.counts) MR_EXPECT_EQ(count.load(), 1u);
    }
  }
}

MR_TEST(BlocksThatHaveEndedAreNotWaitedFor) {
  auto device = OpenDevice(2);
  auto circle = LoadKernel(*device, "circle");
  Lane lane(*device);
  for (uint32_t blocks : {1u, 2u, 40u}) {
    Round round(blocks);
    MR_REQUIRE(round.Launch(lane, circle, 30, true).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(round.words == Circle(blocks, 30, true));
  }
}

MR_TEST(ABlockMayWaitForAnotherWithoutABarrier) {
  auto device = OpenDevice(2);
  auto handed = LoadKernel(*device, "handed");
  Lane lane(*device);
  std::vector<std::atomic<uint32_t>> flags(64);
  MR_REQUIRE(lane.LaunchTogether(handed, {64, 1, 1}, flags.data()).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(flags[0].load(), 1u);
}

MR_TEST(CooperativeLaunchesKeepTheOrderOfTheirStream) {
  auto device = OpenDevice(2);
  auto circle = LoadKernel(*device, "circle");
  auto affine = LoadKernel(*device, "affine");
  Lane lane(*device);
  Round round(8);
  for (int turn = 0; turn < 30; ++turn) {
    MR_REQUIRE(round.Launch(lane, circle, 1).ok());
    lane.Launch(affine, {8, 1, 1}, round.words.data(), 3u, 1u);
  }
  MR_REQUIRE(lane.Drained());
  const std::vector<uint32_t> once = Circle(8, 1, false);
  for (uint32_t block = 0; block < 8; ++block) MR_EXPECT_EQ(round.words[block], once[block] * 3 + 1);
}

MR_TEST(CooperativeLaunchesOfManyStreamsRunSideBySideOrInTurn) {
  auto device = OpenDevice(2);
  auto circle = LoadKernel(*device, "circle");
#if defined(__SANITIZE_THREAD__)
  constexpr uint32_t kBlocks = 16;  // The sanitizer leaves address space for about 150 threads with kernel memory.
#else
  constexpr uint32_t kBlocks = cpu::kMaxCooperativeBlocks / 4;
#endif
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<std::unique_ptr<Round>> rounds;
  for (int i = 0; i < 7; ++i) {
    lanes.push_back(std::make_unique<Lane>(*device));
    rounds.push_back(std::make_unique<Round>(kBlocks));
    MR_REQUIRE(rounds.back()->Launch(*lanes.back(), circle, 2).ok());
    MR_REQUIRE(rounds.back()->Launch(*lanes.back(), circle, 3).ok());
  }
  for (int i = 0; i < 7; ++i) {
    MR_REQUIRE(lanes[i]->Drained());
    MR_EXPECT(rounds[i]->words == Circle(kBlocks, 3, false));
    for (auto& count : rounds[i]->counts) MR_EXPECT_EQ(count.load(), 2u);
  }
}

MR_TEST(TwoGridsThatFitRunAtTheSameTime) {
  auto device = OpenDevice(2);
  auto meet = LoadKernel(*device, "meet");
  Lane one(*device);
  Lane other(*device);
  std::atomic<uint32_t> flag{0};
  MR_REQUIRE(one.LaunchTogether(meet, {1, 1, 1}, &flag, 2u).ok());
  MR_REQUIRE(other.LaunchTogether(meet, {1, 1, 1}, &flag, 2u).ok());
  MR_REQUIRE(one.Drained() && other.Drained());
}

MR_TEST(ALaunchWithoutThreadsForItsBlocksIsRefused) {
  auto device = OpenDevice(2);
  auto circle = LoadKernel(*device, "circle");
  auto affine = LoadKernel(*device, "affine");
  Lane lane(*device);
  Round small(3);
  MR_REQUIRE(small.Launch(lane, circle, 2).ok() && lane.Drained());
  {
    const testing::RefusedThreads refused("mr-block", 20);
    Round large(200);
    const Status status = large.Launch(lane, circle, 2);
    MR_EXPECT(status.code() == StatusCode::kOutOfMemory);
    MR_EXPECT_EQ(status.driver_code(), EAGAIN);
    MR_EXPECT_EQ(refused.count(), 1);
  }
  // The stream continues, and so do launches for which there are threads.
  Round again(3);
  MR_REQUIRE(again.Launch(lane, circle, 2).ok());
  uint32_t word = 1;
  lane.Launch(affine, {1, 1, 1}, &word, 5u, 1u);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(again.words == Circle(3, 2, false));
  MR_EXPECT_EQ(word, 6u);
}

MR_TEST(SharedMemoryIsEachBlocksOwn) {
  auto device = OpenDevice(2);
  auto shared = LoadKernel(*device, "shared");
  Lane lane(*device);
  lane.shared_bytes = 4096;
  uint32_t aligned = 0;
  MR_REQUIRE(lane.LaunchTogether(shared, {1, 1, 1}, &aligned).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(aligned, 1u);
}

MR_TEST(BlocksBeginInAnyOrderUnderASeed) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    setenv("MILLRACE_CPU_SEED", std::to_string(seed).c_str(), 1);
    auto device = OpenDevice(2);
    auto circle = LoadKernel(*device, "circle");
    Lane lane(*device);
    Round round(30);
    MR_REQUIRE(round.Launch(lane, circle, 10, seed % 2 == 0).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(round.words == Circle(30, 10, seed % 2 == 0));
  }
  unsetenv("MILLRACE_CPU_SEED");
}

}  // namespace
}  // namespace millrace
