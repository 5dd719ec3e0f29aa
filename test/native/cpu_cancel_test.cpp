// Cancelled CPU devices: work that has not begun is dropped, running work stops, and work that streams of other devices
// wait for still runs.
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cpu_support.h"

namespace millrace {
namespace {

using Word = std::atomic<uint32_t>;

bool IsIdle(const Lane& lane) {
  return Eventually([&] { return !lane.stream->IsBusy(lane.last); }, 10000);
}

/// A lane of a cancelled device never drains.
void End(Lane& lane) {
  lane.stream.reset();
  lane.sink.reset();
}

MR_TEST(WhatHasNotBegunIsDroppedAndItsTicketsNeverComplete) {
  auto device = OpenDevice(2);
  auto gate = LoadKernel(*device, "meet");
  auto busy = LoadKernel(*device, "busy");
  Word flag{0};
  std::vector<Word> counts(4);
  Lane first(*device);
  Lane second(*device);
  auto memory = std::move(first.stream->Allocate(++first.last, 4096).value());
  const hal::Ticket made = first.last;
  first.Launch(gate, {1, 1, 1}, &flag, 2u);
  first.Launch(busy, {4, 1, 1}, counts.data());
  std::byte* const address = memory->address();
  MR_EXPECT(first.stream->Free(++first.last, std::move(memory)).ok());
  second.Wait(first, first.last);
  second.Launch(busy, {4, 1, 1}, counts.data());
  // The first launch has begun, so it is not dropped.
  MR_REQUIRE(Eventually([&] { return flag.load() == 1; }));
  device->Cancel();
  // It waited for dropped work, and continues by itself.
  MR_REQUIRE(IsIdle(second));
  MR_EXPECT(first.stream->IsBusy(first.last));
  // Running work may still use memory whose free is queued.
  *address = std::byte{1};
  flag.store(2);
  MR_REQUIRE(IsIdle(first));
  MR_EXPECT_EQ(first.stream->Completed(), made);
  MR_EXPECT_EQ(second.stream->Completed(), 0u);
  for (auto& count : counts) MR_EXPECT_EQ(count.load(), 0u);
  End(first);
  End(second);
  device->Close();
}

MR_TEST(AGridStopsBetweenItsBlocks) {
  constexpr uint32_t kBlocks = 20000;  // Of a millisecond each.
  auto device = OpenDevice(2);
  auto slow = LoadKernel(*device, "slow");
  std::vector<Word> counts(kBlocks);
  std::vector<int32_t> threads(kBlocks);
  Lane lane(*device);
  lane.Launch(slow, {kBlocks, 1, 1}, counts.data(), threads.data());
  MR_REQUIRE(Eventually([&] { return counts[0].load() == 1; }));
  device->Cancel();
  MR_REQUIRE(IsIdle(lane));
  MR_EXPECT_EQ(lane.stream->Completed(), 0u);
  MR_EXPECT_EQ(counts[kBlocks - 1].load(), 0u);
  End(lane);
}

MR_TEST(LaunchesOfKernelsByKernelsStop) {
  auto device = OpenDevice(2);
  const std::string& path = KernelPath();
  auto request = Request(path, "rounds");
  request.is_launching = true;
  auto rounds = device->LoadKernel(request).value();
  uint32_t word = 0;
  protocol::FaultSlot slot{};
  uint32_t fault = 0;
  Lane lane(*device);
  void* unused = nullptr;
  lane.Launch(rounds, {1, 1, 1}, &word, unused, 4'000'000'000u, &slot, &fault);
  device->Cancel();
  MR_REQUIRE(IsIdle(lane));
  MR_EXPECT_EQ(lane.stream->Completed(), 0u);
  End(lane);
}

MR_TEST(WhatAnotherDeviceWaitsForRunsToItsEnd) {
  auto going = OpenDevice(2);
  auto staying = OpenDevice(2);
  auto gate = LoadKernel(*going, "gate");
  auto affine = LoadKernel(*going, "affine");
  Word flag{0};
  uint32_t word = 1;
  Lane behind(*going);
  Lane lane(*going);
  Lane waiter(*staying);
  behind.Launch(gate, {1, 1, 1}, &flag);
  behind.Launch(affine, {1, 1, 1}, &word, 10u, 1u);
  const hal::Ticket of_behind = behind.last;
  behind.Launch(affine, {1, 1, 1}, &word, 10u, 9u);
  // The waiter waits for this, and this for that.
  lane.Wait(behind, of_behind);
  lane.Launch(affine, {1, 1, 1}, &word, 10u, 2u);
  const hal::Ticket of_lane = lane.last;
  lane.Launch(affine, {1, 1, 1}, &word, 10u, 8u);
  waiter.Wait(lane, of_lane);
  waiter.Launch(affine, {1, 1, 1}, &word, 10u, 3u);
  going->Cancel();
  // Nothing later is promised.
  MR_EXPECT(waiter.stream->Wait(waiter.last + 1, *lane.stream, lane.last).code() == StatusCode::kUpstream);
  flag.store(1);
  MR_REQUIRE(waiter.Drained());
  MR_REQUIRE(IsIdle(lane) && IsIdle(behind));
  MR_EXPECT_EQ(word, 1123u);
  MR_EXPECT_EQ(lane.stream->Completed(), of_lane);
  MR_EXPECT_EQ(behind.stream->Completed(), of_behind);
  End(lane);
  End(behind);
}

MR_TEST(DevicesThatWaitForEachOtherComeToRestWhenAllAreGivenUp) {
  auto first = OpenDevice(2);
  auto second = OpenDevice(2);
  auto gate = LoadKernel(*first, "gate");
  auto busy = LoadKernel(*first, "busy");
  Word flag{0};
  std::vector<Word> counts(1);
  Lane a(*first);
  Lane b(*second);
  a.Launch(gate, {1, 1, 1}, &flag);
  for (int round = 0; round < 100; ++round) {
    a.Launch(busy, {1, 1, 1}, counts.data());
    b.Wait(a, a.last);
    b.Launch(busy, {1, 1, 1}, counts.data());
    a.Wait(b, b.last);
  }
  first->Cancel();
  second->Cancel();
  // Each look cancels work that the previous look promised to the other device.
  for (int look = 0; look < 300; ++look) {
    first->Cancel();
    second->Cancel();
  }
  MR_REQUIRE(IsIdle(b));
  flag.store(1);
  MR_REQUIRE(IsIdle(a));
  MR_EXPECT_EQ(counts[0].load(), 0u);
  End(a);
  End(b);
}

MR_TEST(ACooperativeLaunchBeginsWholeOrNotAtAll) {
  auto device = OpenDevice(2);
  auto handed = LoadKernel(*device, "handed");
  std::array<Word, 8> flags{};
  Lane lane(*device);
  MR_REQUIRE(lane.LaunchTogether(handed, {8, 1, 1}, flags.data()).ok());
  device->Cancel();
  MR_REQUIRE(IsIdle(lane));
  uint32_t begun = 0;
  for (auto& flag : flags) begun += flag.load();
  MR_EXPECT(begun == 0 || begun == 8);
  End(lane);
}

/// Streams of three devices wait for each other at random, while one device after the other is cancelled. The waits of
/// the last device's streams always complete.
MR_TEST(StreamsThatStayHaveAllTheyWaitedFor) {
  constexpr uint32_t kLanes = 4;
  constexpr uint32_t kItems = 60;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 dice(seed);
    std::vector<std::unique_ptr<hal::Device>> devices;
    for (int n = 0; n < 3; ++n) devices.push_back(OpenDevice(2));
    auto affine = LoadKernel(*devices[0], "affine");
    std::vector<Lane> lanes;
    for (uint32_t n = 0; n < 3 * kLanes; ++n) lanes.emplace_back(*devices[n / kLanes]);
    // words[lane] counts the lane's launches; a wait records how far the other lane must be.
    std::vector<uint32_t> words(lanes.size());
    std::array<bool, 3> is_gone{};
    for (uint32_t item = 0; item < kItems * lanes.size(); ++item) {
      const uint32_t n = dice() % lanes.size();
      if (is_gone[n / kLanes]) continue;
      if (item == kItems * 5) devices[0]->Cancel(), is_gone[0] = true;
      if (item == kItems * 9) devices[1]->Cancel(), is_gone[1] = true;
      if (is_gone[n / kLanes]) continue;
      Lane& other = lanes[dice() % lanes.size()];
      if (dice() % 3 == 0 && &other != &lanes[n] && other.last > 0) {
        const hal::Ticket until = 1 + dice() % other.last;
        if (lanes[n].stream->Wait(lanes[n].last + 1, *other.stream, until).ok()) ++lanes[n].last;
      } else {
        lanes[n].Launch(affine, {1, 1, 1}, &words[n], 1u, 1u);
      }
    }
    for (uint32_t n = 2 * kLanes; n < lanes.size(); ++n) MR_REQUIRE(lanes[n].Drained());
    for (uint32_t n = 0; n < 2 * kLanes; ++n) {
      MR_REQUIRE(Eventually([&] {
        devices[0]->Cancel();
        devices[1]->Cancel();
        return !lanes[n].stream->IsBusy(lanes[n].last);
      }));
    }
    for (uint32_t n = 0; n < 2 * kLanes; ++n) End(lanes[n]);
  }
}

}  // namespace
}  // namespace millrace
