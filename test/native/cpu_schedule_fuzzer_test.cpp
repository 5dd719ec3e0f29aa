// The schedule fuzzer of the CPU backend: unordered operations occur in every order, ordered ones keep their order.
#include <array>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "cpu/schedule_fuzzer.h"
#include "cpu_support.h"

namespace millrace {
namespace {

constexpr uint32_t kSeeds = 200;

std::unique_ptr<hal::Device> OpenWith(uint32_t seed, uint32_t threads = 2) {
  setenv("MILLRACE_CPU_SEED", std::to_string(seed).c_str(), 1);
  auto device = OpenDevice(threads);
  unsetenv("MILLRACE_CPU_SEED");
  return device;
}

// Two streams write digits into one word. Counts each result.
std::map<uint32_t, uint32_t> Race(bool has_seed, bool has_wait) {
  std::map<uint32_t, uint32_t> results;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    auto device = has_seed ? OpenWith(seed) : OpenDevice();
    auto affine = LoadKernel(*device, "affine", true);
    uint32_t word = 0;
    Lane a(*device);
    Lane b(*device);
    const Ticket written = a.Launch(affine, {1, 1, 1}, &word, 10u, 1u);
    if (has_wait) b.Wait(a, written);
    b.Launch(affine, {1, 1, 1}, &word, 10u, 2u);
    if (!a.Drained() || !b.Drained()) return {};
    ++results[word];
  }
  return results;
}

MR_TEST(AMissingWaitShowsWithinAFewSeeds) {
  const auto results = Race(true, false);
  MR_EXPECT(results.contains(12));
  MR_EXPECT(results.contains(21));
  for (const auto& [word, count] : results) std::printf("  %u: %u of %u seeds\n", word, count, kSeeds);
}

MR_TEST(AMissingWaitHidesWithoutASeed) {
  MR_EXPECT((Race(false, false) == std::map<uint32_t, uint32_t>{{12, kSeeds}}));
}

MR_TEST(AWaitHoldsUnderEverySeed) {
  MR_EXPECT((Race(true, true) == std::map<uint32_t, uint32_t>{{12, kSeeds}}));
}

MR_TEST(StreamsThatWaitForOnePointGoOnInAnyOrder) {
  std::map<uint32_t, uint32_t> results;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    auto device = OpenWith(seed, 1);
    auto gate = LoadKernel(*device, "gate");
    auto affine = LoadKernel(*device, "affine", true);
    std::atomic<uint32_t> flag{0};
    uint32_t word = 0;
    Lane first(*device);
    const Ticket opened = first.Launch(gate, {1, 1, 1}, &flag);
    std::vector<Lane> lanes;
    for (uint32_t i = 0; i < 3; ++i) {
      Lane& lane = lanes.emplace_back(*device, -static_cast<int32_t>(i));
      lane.Wait(first, opened);
      lane.Launch(affine, {1, 1, 1}, &word, 10u, i + 1);
    }
    flag.store(1);
    for (Lane& lane : lanes) MR_REQUIRE(lane.Drained());
    ++results[word];
  }
  MR_EXPECT_EQ(results.size(), 6u);
}

MR_TEST(APriorityIsOnlyAHint) {
  std::map<uint32_t, uint32_t> results;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    auto device = OpenWith(seed, 1);
    auto gate = LoadKernel(*device, "gate");
    auto affine = LoadKernel(*device, "affine");
    std::atomic<uint32_t> flag{0};
    uint32_t word = 0;
    Lane blocker(*device);
    Lane normal(*device, 0);
    Lane urgent(*device, -5);
    blocker.Launch(gate, {1, 1, 1}, &flag);
    normal.Launch(affine, {1, 1, 1}, &word, 10u, 1u);
    urgent.Launch(affine, {1, 1, 1}, &word, 10u, 2u);
    flag.store(1);
    MR_REQUIRE(normal.Drained() && urgent.Drained());
    ++results[word];
  }
  MR_EXPECT_EQ(results.size(), 2u);
}

MR_TEST(OrderedProgramsGiveOneResultUnderEverySeed) {
  constexpr uint32_t kLanes = 6;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::array devices{OpenWith(seed), OpenWith(seed + 1000, 3)};
    std::array<std::shared_ptr<hal::Kernel>, 4> affine;
    for (size_t i = 0; i < affine.size(); ++i) affine[i] = LoadKernel(*devices[i % 2], "affine", i < 2);
    std::vector<Lane> lanes;
    for (uint32_t i = 0; i < kLanes; ++i) lanes.emplace_back(*devices[i % 2], -static_cast<int32_t>(i % 3));
    uint32_t word = 1;
    uint32_t expected = 1;
    uint32_t random = seed;
    Lane* last = &lanes[0];
    for (uint32_t step = 0; step < 300; ++step) {
      random = random * 1664525 + 1013904223;
      const uint32_t index = (random >> 8) % kLanes;
      Lane& lane = lanes[index];
      lane.Wait(*last, last->last);
      if (random >> 31) lane.Nop();
      lane.Launch(affine[index % 2 + (random >> 30 & 1) * 2], {1, 1, 1}, &word, 3u, step);
      expected = expected * 3 + step;
      last = &lane;
    }
    for (Lane& lane : lanes) MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(word, expected);
    // Both devices are idle before either closes.
    lanes.clear();
  }
}

MR_TEST(KernelsStillMeetAndGridsAreStillWhole) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    auto device = OpenWith(seed);
    auto meet = LoadKernel(*device, "meet");
    auto busy = LoadKernel(*device, "busy");
    std::atomic<uint32_t> flag{0};
    std::vector<std::atomic<uint32_t>> counts(200);
    Lane a(*device);
    Lane b(*device);
    for (uint32_t round = 1; round <= 10; ++round) {
      a.Launch(meet, {1, 1, 1}, &flag, 2 * round);
      b.Launch(meet, {1, 1, 1}, &flag, 2 * round);
      a.Launch(busy, {200, 1, 1}, counts.data());
    }
    MR_REQUIRE(a.Drained() && b.Drained());
    for (auto& count : counts) MR_EXPECT_EQ(count.load(), 10u);
  }
}

MR_TEST(ASeedIsANumber) {
  hal::DeviceInfo info;
  info.multiprocessors = 2;
  info.total_memory_bytes = 1 << 20;
  for (const char* text : {"one", "-1", "4294967296", "7x"}) {
    setenv("MILLRACE_CPU_SEED", text, 1);
    MR_EXPECT(cpu::CpuDevice::Open(info).status().code() == StatusCode::kUnavailable);
  }
  for (const char* text : {"", "0", "4294967295"}) {
    setenv("MILLRACE_CPU_SEED", text, 1);
    MR_EXPECT(cpu::CpuDevice::Open(info).ok());
  }
  unsetenv("MILLRACE_CPU_SEED");
}

MR_TEST(ASeedGivesTheSameDiceToADevice) {
  const auto roll = [](uint32_t seed, uint32_t ordinal) {
    cpu::ScheduleFuzzer dice(seed, ordinal);
    std::array<uint32_t, 64> rolls;
    for (uint32_t& value : rolls) value = dice.Below(6);
    return rolls;
  };
  MR_EXPECT(roll(7, 0) == roll(7, 0));
  MR_EXPECT(roll(7, 0) != roll(8, 0));
  MR_EXPECT(roll(7, 0) != roll(7, 1));
  std::array<uint32_t, 6> counts{};
  cpu::ScheduleFuzzer dice(1, 0);
  for (int i = 0; i < 6000; ++i) ++counts.at(dice.Below(6));
  for (uint32_t count : counts) MR_EXPECT(count > 800 && count < 1200);
}

}  // namespace
}  // namespace millrace
