// Streams of the CPU backend: order within a stream, independence between streams, waits that block no thread, and work
// that runs inside the submitting call.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "cpu_support.h"

namespace millrace {
namespace {

MR_TEST(AStreamRunsItsRecordsInOrder) {
  auto device = OpenDevice();
  auto affine = LoadKernel(*device, "affine");
  uint32_t word = 1;
  uint32_t expected = 1;
  Lane lane(*device);
  for (uint32_t i = 0; i < 2000; ++i) {
    lane.Launch(affine, {1, 1, 1}, &word, 3u, i);
    expected = expected * 3 + i;
  }
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, expected);
}

MR_TEST(KernelsOfTwoStreamsRunSideBySide) {
  auto device = OpenDevice(2);
  auto meet = LoadKernel(*device, "meet");
  std::atomic<uint32_t> flag{0};
  Lane a(*device);
  Lane b(*device);
  for (uint32_t round = 1; round <= 20; ++round) {
    a.Launch(meet, {1, 1, 1}, &flag, 2 * round);
    b.Launch(meet, {1, 1, 1}, &flag, 2 * round);
  }
  MR_REQUIRE(a.Drained() && b.Drained());
  MR_EXPECT_EQ(flag.load(), 40u);
}

MR_TEST(ARingOfWaitsNeedsOneThread) {
  auto device = OpenDevice(1);
  auto gate = LoadKernel(*device, "gate");
  auto affine = LoadKernel(*device, "affine");
  std::atomic<uint32_t> flag{0};
  uint32_t word = 0;
  std::vector<Lane> lanes;
  for (int i = 0; i < 64; ++i) lanes.emplace_back(*device);
  lanes[0].Launch(gate, {1, 1, 1}, &flag);
  for (uint32_t round = 0; round < 5; ++round) {
    for (size_t i = 0; i < lanes.size(); ++i) {
      Lane& before = lanes[(i + lanes.size() - 1) % lanes.size()];
      // The first lane of a round waits for the last of the round before: the ring.
      lanes[i].Wait(before, before.last);
      lanes[i].Launch(affine, {1, 1, 1}, &word, 1u, 1u);
    }
  }
  for (size_t i = 1; i < lanes.size(); ++i) MR_EXPECT_EQ(lanes[i].stream->Completed(), 0u);
  flag.store(1);
  for (Lane& lane : lanes) MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, 64u * 5u);
}

MR_TEST(AWaitMayNameAStreamOfAnotherDevice) {
  auto one = OpenDevice();
  auto two = OpenDevice();
  auto gate = LoadKernel(*one, "gate");
  auto affine = LoadKernel(*two, "affine");
  std::atomic<uint32_t> flag{0};
  uint32_t word = 7;
  Lane a(*one);
  Lane b(*two);
  const Ticket point = a.Launch(gate, {1, 1, 1}, &flag);
  b.Wait(a, point);
  b.Launch(affine, {1, 1, 1}, &word, 0u, 9u);
  Lane unrelated(*two);
  unrelated.Launch(affine, {1, 1, 1}, &word, 1u, 1u);
  MR_REQUIRE(unrelated.Drained());
  MR_EXPECT_EQ(word, 8u);
  MR_EXPECT_EQ(b.stream->Completed(), 0u);
  flag.store(1);
  MR_REQUIRE(b.Drained());
  MR_EXPECT_EQ(word, 9u);
}

MR_TEST(AWaitForAReachedPointCostsNothing) {
  auto device = OpenDevice();
  Lane a(*device);
  Lane b(*device);
  b.Wait(a, a.Nop());
  MR_EXPECT_EQ(b.stream->Completed(), b.last);
}

MR_TEST(AStreamThatWaitsOutlivesTheOneItWaitedFor) {
  auto device = OpenDevice();
  auto gate = LoadKernel(*device, "gate");
  std::atomic<uint32_t> flag{0};
  Lane late(*device);
  late.Launch(gate, {1, 1, 1}, &flag);
  {
    Lane early(*device);
    late.Wait(early, early.Nop());
  }
  flag.store(1);
  MR_EXPECT(late.Drained());
}

MR_TEST(SmallWorkOnAnIdleStreamRunsInsideTheCall) {
  auto device = OpenDevice();
  auto bounded = LoadKernel(*device, "whoami", true);
  auto unbounded = LoadKernel(*device, "whoami", false);
  const pid_t self = gettid();
  std::array<int32_t, 512> threads{};
  std::vector<std::byte> bytes(64 << 10);
  Lane lane(*device);
  const auto completed = [&] { return lane.stream->Completed() == lane.last; };

  lane.Nop();
  MR_EXPECT(completed());
  MR_EXPECT_EQ(lane.sink->last_thread(), self);
  MR_EXPECT(lane.stream->Fill(++lane.last, bytes.data(), 1, 5, 4096).ok());
  MR_EXPECT(completed() && bytes[4095] == std::byte{5} && bytes[4096] == std::byte{0});
  MR_EXPECT(lane.stream->Copy(++lane.last, bytes.data() + 4096, bytes.data(), 4096).ok());
  MR_EXPECT(completed() && bytes[8191] == std::byte{5});
  lane.Launch(bounded, {256, 1, 1}, threads.data());
  MR_EXPECT(completed() && threads[255] == self);

  // Anything else goes to the pool: too large, or of unknown length.
  lane.Launch(bounded, {512, 1, 1}, threads.data());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(threads[0] != self);
  lane.Launch(unbounded, {1, 1, 1}, threads.data());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(threads[0] != self);
  MR_EXPECT(lane.stream->Fill(++lane.last, bytes.data(), 1, 6, bytes.size()).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(lane.sink->last_thread() != self);
}

MR_TEST(SmallWorkBehindOtherWorkWaitsItsTurn) {
  auto device = OpenDevice();
  auto gate = LoadKernel(*device, "gate");
  std::atomic<uint32_t> flag{0};
  Lane lane(*device);
  lane.Launch(gate, {1, 1, 1}, &flag);
  lane.Nop();
  MR_EXPECT_EQ(lane.stream->Completed(), 0u);
  flag.store(1);
  MR_EXPECT(lane.Drained());
}

MR_TEST(TheMoreUrgentStreamGoesFirst) {
  auto device = OpenDevice(1);
  auto gate = LoadKernel(*device, "gate");
  auto affine = LoadKernel(*device, "affine");
  std::atomic<uint32_t> flag{0};
  uint32_t word = 1;
  Lane blocker(*device);
  Lane normal(*device, 0);
  Lane urgent(*device, -5);
  blocker.Launch(gate, {1, 1, 1}, &flag);
  normal.Launch(affine, {1, 1, 1}, &word, 10u, 1u);
  urgent.Launch(affine, {1, 1, 1}, &word, 10u, 2u);
  flag.store(1);
  MR_REQUIRE(normal.Drained() && urgent.Drained());
  MR_EXPECT_EQ(word, 121u);
}

MR_TEST(ARefusedLaunchLeavesItsTicketOpen) {
  auto device = OpenDevice();
  auto affine = LoadKernel(*device, "affine");
  Lane lane(*device);
  MR_EXPECT(lane.stream->Launch(1, {affine.get(), {}, {}, 0, {}}).code() == StatusCode::kLaunchFailed);
  MR_EXPECT_EQ(lane.stream->Completed(), 0u);
  lane.Nop();
  MR_EXPECT_EQ(lane.stream->Completed(), 1u);
}

MR_TEST(FillsWriteEveryElementSize) {
  auto device = OpenDevice();
  Lane lane(*device);
  for (uint32_t size : {1u, 2u, 4u, 8u}) {
    for (uint64_t count : {3ull, 10000ull}) {
      std::vector<uint64_t> words(count + 1);
      auto* bytes = reinterpret_cast<std::byte*>(words.data());
      const uint64_t pattern = 0x8877665544332211;
      MR_EXPECT(lane.stream->Fill(++lane.last, bytes, size, pattern, count).ok());
      MR_REQUIRE(lane.Drained());
      MR_EXPECT(std::memcmp(bytes + (count - 1) * size, &pattern, size) == 0);
      MR_EXPECT(bytes[count * size] == std::byte{0});
    }
  }
}

MR_TEST(DevicesThatWaitForEachOtherLoseNoWake) {
  constexpr uint32_t kStreams = 4;
  constexpr Ticket kItems = 25000;  // A stream; 200 000 in all.
  struct Side {
    std::unique_ptr<hal::Device> device = OpenDevice(2);
    std::shared_ptr<hal::Kernel> bounded = LoadKernel(*device, "affine", true);
    std::shared_ptr<hal::Kernel> pooled = LoadKernel(*device, "affine", false);
    std::vector<Lane> lanes;
    std::array<uint32_t, kStreams> words{};
    std::array<std::atomic<Ticket>, kStreams> accepted{};
  };
  std::array<Side, 2> sides;
  for (Side& side : sides) {
    for (uint32_t i = 0; i < kStreams; ++i) side.lanes.emplace_back(*side.device);
  }
  const auto submit = [&](Side& self, Side& other, uint32_t seed) {
    uint32_t random = seed;
    for (Ticket item = 0; item < kItems; ++item) {
      for (uint32_t i = 0; i < kStreams; ++i) {
        random = random * 1664525 + 1013904223;
        Lane& lane = self.lanes[i];
        const uint32_t target = (random >> 8) % kStreams;
        const Ticket point = other.accepted[target].load();
        switch (random >> 29) {
          case 0:
          case 1:
            lane.Wait(other.lanes[target], point);
            break;
          case 2:
            lane.Wait(self.lanes[target], self.lanes[target].last);
            break;
          case 3:
            lane.Launch(self.bounded, {1, 1, 1}, &self.words[i], 1u, 1u);
            break;
          case 4:
            lane.Launch(self.pooled, {1, 1, 1}, &self.words[i], 1u, 1u);
            break;
          default:
            lane.Nop();
            break;
        }
        self.accepted[i].store(lane.last);
        // The runtime's window.
        while (lane.last - lane.stream->Completed() > protocol::kStreamWindow) std::this_thread::yield();
      }
    }
  };
  std::thread first([&] { submit(sides[0], sides[1], 1); });
  std::thread second([&] { submit(sides[1], sides[0], 2); });
  first.join();
  second.join();
  for (Side& side : sides) {
    for (Lane& lane : side.lanes) MR_EXPECT(lane.Drained());
  }
  // Both are idle before either closes: the last thread that ran one stream may belong to the other device.
  for (Side& side : sides) side.lanes.clear();
}

}  // namespace
}  // namespace millrace
