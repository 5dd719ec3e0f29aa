// The order of accesses to shared memory, as the CPU device's race check sees it.
#include "cpu/race_shadow.h"

#include "testing.h"

namespace millrace {
namespace {

using cpu::Race;
using cpu::RaceAccess;
using cpu::RaceShadow;

constexpr uint32_t kAllLanes = 0xffffffff;

class Block {
 public:
  explicit Block(uint32_t threads) { shadow.BeginBlock(threads); }

  std::optional<Race> Read(uint32_t thread, uint64_t at, uint64_t bytes = 4) { return Access(thread, at, bytes, 0, 0); }
  std::optional<Race> Write(uint32_t thread, uint64_t at, uint64_t bytes = 4) {
    return Access(thread, at, bytes, 1, 0);
  }
  std::optional<Race> Change(uint32_t thread, uint64_t at) { return Access(thread, at, 4, 1, 1); }

  RaceShadow shadow;

 private:
  std::optional<Race> Access(uint32_t thread, uint64_t at, uint64_t bytes, bool is_write, bool is_atomic) {
    const RaceAccess access{thread, is_write, is_atomic, ++places_};
    return shadow.Access(0, at, bytes, access);
  }
  uint32_t places_ = 0;
};

MR_TEST(AWriteAndAReadOfTwoThreadsRace) {
  Block block(64);
  MR_EXPECT(!block.Write(3, 8));
  const std::optional<Race> race = block.Read(40, 10, 2);
  MR_REQUIRE(race.has_value());
  MR_EXPECT(race->byte == 10 && race->first.thread == 3 && race->first.is_write && race->first.place == 1);
  MR_EXPECT(race->second.thread == 40 && !race->second.is_write && race->second.place == 2);
}

MR_TEST(ReadsOtherBytesAndOneThreadDoNotRace) {
  Block block(64);
  MR_EXPECT(!block.Read(0, 0) && !block.Read(1, 0) && !block.Read(40, 0));
  MR_EXPECT(!block.Write(2, 4) && !block.Write(3, 8) && !block.Read(2, 4) && !block.Write(2, 4));
  MR_EXPECT(!block.shadow.Access(1, 4, 4, {5, true, false, 0}));
}

MR_TEST(AWriteRacesWithAnyOfSeveralReads) {
  for (const uint32_t writer : {0u, 1u, 2u, 5u}) {
    Block block(64);
    for (uint32_t reader = 0; reader < 4; ++reader) MR_EXPECT(!block.Read(reader, 0));
    MR_EXPECT(block.Write(writer, 0).has_value());
  }
}

MR_TEST(ABarrierOrdersAllThreads) {
  Block block(256);
  MR_EXPECT(!block.Write(0, 0));
  block.shadow.Barrier();
  MR_EXPECT(!block.Read(200, 0) && !block.Read(3, 0));
  block.shadow.Barrier();
  MR_EXPECT(!block.Write(77, 0));
  block.shadow.BeginBlock(32);
  MR_EXPECT(!block.Write(5, 0));
  MR_EXPECT(block.Write(6, 0).has_value());
}

MR_TEST(LanesThatMeetAreOrdered) {
  Block block(64);
  MR_EXPECT(!block.Write(0, 0) && !block.Write(33, 4));
  block.shadow.MeetWarp(0, 0x3);
  MR_EXPECT(!block.Read(1, 0));
  MR_EXPECT(block.Read(2, 0).has_value());
  block.shadow.MeetWarp(32, kAllLanes);
  MR_EXPECT(!block.Read(34, 4));
  MR_EXPECT(block.Read(1, 4).has_value());
}

MR_TEST(TheOrderOfLanesIsTransitive) {
  Block block(32);
  block.shadow.MeetWarp(0, kAllLanes);
  MR_EXPECT(!block.Write(0, 0));
  block.shadow.MeetWarp(0, 0x3);
  block.shadow.MeetWarp(0, 0x6);
  MR_EXPECT(!block.Read(2, 0));
  MR_EXPECT(block.Read(3, 0).has_value());
}

MR_TEST(ABarrierStartsTheOrderOfLanesAnew) {
  Block block(64);
  block.shadow.MeetWarp(0, kAllLanes);
  block.shadow.Barrier();
  MR_EXPECT(!block.Write(0, 0));
  MR_EXPECT(block.Read(1, 0).has_value());
}

MR_TEST(AnObjectOrdersArrivalsBeforeWaits) {
  Block block(96);
  constexpr uintptr_t kObject = 0x1000;
  MR_EXPECT(!block.Write(0, 0) && !block.Write(70, 4));
  block.shadow.Release(0, kObject);
  MR_EXPECT(!block.Write(0, 8));  // After it arrived.
  block.shadow.Acquire(40, kObject);
  MR_EXPECT(!block.Read(40, 0));
  block.shadow.MeetWarp(32, kAllLanes);
  MR_EXPECT(!block.Read(41, 0));
  MR_EXPECT(block.Read(40, 8).has_value());
  MR_EXPECT(block.Read(40, 4).has_value());
}

MR_TEST(AnAtomicWriteReleasesWhatCameBeforeAFence) {
  Block block(64);
  constexpr uintptr_t kCounter = 0x2000;
  MR_EXPECT(!block.Write(0, 0) && !block.Write(1, 4));
  block.shadow.Fence(0);
  MR_EXPECT(!block.Write(0, 8));
  for (const uint32_t thread : {0u, 1u}) block.shadow.ReleaseFenced(thread, kCounter);
  block.shadow.Acquire(33, kCounter);
  MR_EXPECT(!block.Read(33, 0));
  MR_EXPECT(block.Read(33, 4).has_value());
  MR_EXPECT(block.Read(33, 8).has_value());
}

MR_TEST(AtomicAccessesRaceWithPlainOnesOnly) {
  Block block(64);
  MR_EXPECT(!block.Change(0, 0) && !block.Change(1, 0) && !block.Change(33, 0));
  const std::optional<Race> race = block.Read(1, 0);
  MR_REQUIRE(race.has_value());
  MR_EXPECT(race->first.is_atomic && race->first.thread != 1);
  MR_EXPECT(!block.Write(9, 4) && block.Change(8, 4).has_value());
}

MR_TEST(AReadBeforeAnAtomicAccessOfTheSameThreadDoesNotCount) {
  Block block(64);
  MR_EXPECT(!block.Read(0, 0) && !block.Change(0, 0) && !block.Change(1, 0));
  MR_EXPECT(!block.Read(2, 4) && block.Change(3, 4).has_value());
}

MR_TEST(CodeThatRunsOnceIsOrderedByBarriersOnly) {
  Block block(64);
  MR_EXPECT(!block.Write(0, 0));
  MR_EXPECT(block.Read(RaceShadow::kEveryThread, 0).has_value());
  block.shadow.Barrier();
  MR_EXPECT(!block.Read(RaceShadow::kEveryThread, 0));
  MR_EXPECT(block.Write(5, 0).has_value());
  Block one(1);
  MR_EXPECT(!one.Write(0, 0) && !one.Read(RaceShadow::kEveryThread, 0));
}

}  // namespace
}  // namespace millrace
