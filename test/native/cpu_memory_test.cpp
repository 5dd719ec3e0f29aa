// Memory of the CPU backend: its budget, its stream order, its cache, and the pool's statistics.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "cpu/memory.h"
#include "cpu_support.h"

namespace millrace {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

std::unique_ptr<hal::Memory> Allocate(Lane& lane, uint64_t bytes) {
  return std::move(lane.stream->Allocate(++lane.last, bytes).value());
}

void Free(Lane& lane, std::unique_ptr<hal::Memory> memory) {
  MR_EXPECT(lane.stream->Free(++lane.last, std::move(memory)).ok());
  MR_EXPECT(lane.Drained());
}

uint64_t AddressOf(const hal::Memory& memory) {
  return reinterpret_cast<uint64_t>(memory.address());
}

MR_TEST(GuardedMemoryEndsWhereItsGuardBegins) {
  auto device = OpenDevice(2, 8 << 20);
  MR_REQUIRE(device->GuardMemory().ok());
  Lane lane(*device);
  auto other = Allocate(lane, 100);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{48}, uint64_t{4096}, kMebibyte + 20}) {
    auto memory = Allocate(lane, bytes);
    MR_REQUIRE(lane.Drained());
    const uint64_t address = AddressOf(*memory);
    MR_EXPECT_EQ(address % 16, 0u);
    const uint64_t room = std::max<uint64_t>((bytes + 15) / 16 * 16, 16);
    MR_EXPECT_EQ((address + room) % 4096, 0u);
    std::memset(memory->address(), 1, bytes);
    // Nearer to this array than to the parameter.
    const uint64_t word = AddressOf(*other);
    for (const uint64_t near : {address - kMebibyte / 4, address, address + room, address + room + kMebibyte / 4}) {
      const auto found = cpu::Heap::FindStrayAccess(near, {&word, 1});
      MR_REQUIRE(found.has_value());
      MR_EXPECT_EQ(found->array.address, address);
      MR_EXPECT_EQ(found->array.bytes, bytes);
      MR_EXPECT_EQ(found->byte, static_cast<int64_t>(near - address));
    }
    Free(lane, std::move(memory));
  }
  Free(lane, std::move(other));
  MR_EXPECT_EQ(device->PoolUse().value().reserved, 0u);
}

MR_TEST(WritesBesideGuardedMemoryAreFoundOnce) {
  auto device = OpenDevice(2, 8 << 20);
  MR_REQUIRE(device->GuardMemory().ok());
  Lane lane(*device);
  for (const uint64_t bytes : {0, 1, 15, 100, 4095, 5000}) {
    auto memory = Allocate(lane, bytes);
    MR_REQUIRE(lane.Drained());
    const uint64_t word = AddressOf(*memory);
    const int64_t front = static_cast<int64_t>(word % 4096);
    const int64_t behind = static_cast<int64_t>((bytes + 15) / 16 * 16 - bytes);
    std::vector<int64_t> strays;
    for (const int64_t byte : {int64_t{1}, int64_t{5}, front}) {
      if (byte > 0 && byte <= front) strays.push_back(-byte);
    }
    for (int64_t byte = 0; byte < behind; ++byte) strays.push_back(static_cast<int64_t>(bytes) + byte);
    MR_EXPECT(!cpu::Heap::FindStrayWrite({&word, 1}).has_value());
    for (const int64_t byte : strays) {
      memory->address()[byte] = std::byte{0};
      const auto found = cpu::Heap::FindStrayWrite({&word, 1});
      MR_REQUIRE(found.has_value());
      MR_EXPECT_EQ(found->byte, byte);
      MR_EXPECT_EQ(found->array.bytes, bytes);
      MR_EXPECT(!cpu::Heap::FindStrayWrite({&word, 1}).has_value());
    }
    Free(lane, std::move(memory));
  }
}

MR_TEST(OfVeryManyArraysTheLastOnesAreNotGuarded) {
  auto device = OpenDevice(2, 256 << 20);
  MR_REQUIRE(device->GuardMemory().ok());
  Lane lane(*device);
  std::vector<std::unique_ptr<hal::Memory>> held;
  for (int n = 0; n < 20'000; ++n) held.push_back(Allocate(lane, 4));
  MR_EXPECT(AddressOf(*held[1]) % 4096 != 0 && AddressOf(*held.back()) % 256 == 0);
  held.clear();
}

MR_TEST(SmallArraysShareMemoryThatHoldsNothingElse) {
  auto device = OpenDevice(2, 64 * kMebibyte);
  Lane lane(*device);
  std::vector<std::unique_ptr<hal::Memory>> held;
  uint64_t total = 0;
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t n = 1; n < 2000; ++n) {
      const uint64_t bytes = n * 7919 % 65535;
      auto memory = device->PoolUse().value().free > 70'000 ? Allocate(lane, bytes) : nullptr;
      if (memory == nullptr) continue;
      total += bytes;
      MR_EXPECT_EQ(AddressOf(*memory) % 256, 0u);
      std::memset(memory->address(), static_cast<int>(n), bytes);
      held.push_back(std::move(memory));
    }
    for (const auto& memory : held) {
      const std::byte* first = memory->address();
      MR_EXPECT(std::all_of(first, first + memory->bytes(), [&](std::byte byte) { return byte == first[0]; }));
    }
    // Every other one stays, and another round fills the gaps.
    for (size_t n = 0; n < held.size(); n += 2) held[n].reset();
    std::erase(held, nullptr);
  }
  held.clear();
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(total > 0);
  MR_EXPECT_EQ(device->PoolUse().value().used, 0u);
}

MR_TEST(MemoryIsAlignedBudgetedAndReused) {
  auto device = OpenDevice(2, 8 << 20);
  Lane lane(*device);
  const auto allocate = [&](uint64_t bytes) { return lane.stream->Allocate(lane.last + 1, bytes); };

  auto nothing = allocate(0);
  ++lane.last;
  auto also_nothing = allocate(0);
  ++lane.last;
  MR_REQUIRE(nothing.ok() && also_nothing.ok());
  MR_EXPECT(nothing.value()->address() != also_nothing.value()->address());

  auto large = allocate(5 << 20);
  ++lane.last;
  MR_REQUIRE(large.ok());
  MR_EXPECT_EQ(reinterpret_cast<uintptr_t>(large.value()->address()) % 256, 0u);
  MR_EXPECT_EQ(large.value()->bytes(), 5u << 20);
  std::memset(large.value()->address(), 1, 5 << 20);
  MR_EXPECT(allocate(5 << 20).status().code() == StatusCode::kOutOfMemory);
  MR_EXPECT(allocate(~0ull).status().code() == StatusCode::kOutOfMemory);

  const std::byte* address = large.value()->address();
  MR_EXPECT(lane.stream->Free(++lane.last, std::move(large.value())).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(device->FreeBytes() >= (7u << 20));
  auto again = allocate(5 << 20);
  ++lane.last;
  MR_REQUIRE(again.ok());
  MR_EXPECT(again.value()->address() == address);
}

MR_TEST(MemoryIsFreedInStreamOrder) {
  auto device = OpenDevice(2, 8 << 20);
  auto gate = LoadKernel(*device, "gate");
  std::atomic<uint32_t> flag{0};
  Lane lane(*device);
  auto memory = lane.stream->Allocate(++lane.last, 6 << 20);
  MR_REQUIRE(memory.ok());
  lane.Launch(gate, {1, 1, 1}, &flag);
  MR_EXPECT(lane.stream->Free(++lane.last, std::move(memory.value())).ok());
  Lane other(*device);
  MR_EXPECT(other.stream->Allocate(other.last + 1, 6 << 20).status().code() == StatusCode::kOutOfMemory);
  flag.store(1);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(other.stream->Allocate(++other.last, 6 << 20).ok());
}

MR_TEST(AStreamReusesWhatItHasFreedBeforeTheFreeRuns) {
  auto device = OpenDevice(2, 64 * kMebibyte);
  auto gate = LoadKernel(*device, "gate");
  std::atomic<uint32_t> flag{0};
  Lane lane(*device);
  auto memory = Allocate(lane, 4'000'000);
  const uint64_t address = AddressOf(*memory);
  lane.Launch(gate, {1, 1, 1}, &flag);
  MR_EXPECT(lane.stream->Free(++lane.last, std::move(memory)).ok());
  // Another size, and another stream.
  MR_EXPECT(AddressOf(*Allocate(lane, 2 * kMebibyte)) != address);
  Lane other(*device);
  MR_EXPECT(AddressOf(*Allocate(other, 4'000'000)) != address);
  memory = Allocate(lane, 4 * kMebibyte);
  MR_EXPECT_EQ(AddressOf(*memory), address);
  MR_EXPECT_EQ(memory->bytes(), 4 * kMebibyte);
  // Once only.
  MR_EXPECT(AddressOf(*Allocate(lane, 4 * kMebibyte)) != address);
  flag.store(1);
  MR_REQUIRE(lane.Drained());
  Free(lane, std::move(memory));
  MR_EXPECT_EQ(device->PoolUse().value().used, 0u);
}

MR_TEST(FaultSlotsBeginAsZeros) {
  auto device = OpenDevice();
  auto slots = device->AllocateFaultSlots(3000);
  MR_REQUIRE(slots.ok());
  MR_EXPECT_EQ(slots.value()->bytes(), 3000u * 64u);
  const auto* first = slots.value()->address();
  MR_EXPECT(std::all_of(first, first + slots.value()->bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
}

MR_TEST(ThePoolCountsWhatIsUsedAndWhatIsKept) {
  auto device = OpenDevice(2, 64 * kMebibyte);
  Lane lane(*device);
  const auto use = [&] { return device->PoolUse().value(); };
  MR_EXPECT_EQ(use().total, 64 * kMebibyte);
  MR_EXPECT_EQ(use().free, 64 * kMebibyte);
  MR_EXPECT_EQ(use().reserved, 0u);

  auto one = Allocate(lane, 8 * kMebibyte);
  auto two = Allocate(lane, 16 * kMebibyte);
  MR_EXPECT_EQ(use().used, 24 * kMebibyte);
  MR_EXPECT_EQ(use().free, 40 * kMebibyte);
  MR_EXPECT_EQ(use().reserved, 24 * kMebibyte);
  Free(lane, std::move(two));
  MR_EXPECT_EQ(use().used, 8 * kMebibyte);
  MR_EXPECT_EQ(use().reserved, 24 * kMebibyte);
  MR_EXPECT_EQ(use().used_high, 24 * kMebibyte);
  MR_EXPECT_EQ(use().reserved_high, 24 * kMebibyte);

  // Kept memory serves the same size again, and gives way to another size that would not fit beside it.
  two = Allocate(lane, 16 * kMebibyte);
  MR_EXPECT_EQ(use().reserved, 24 * kMebibyte);
  Free(lane, std::move(two));
  two = Allocate(lane, 48 * kMebibyte);
  MR_EXPECT_EQ(use().used, 56 * kMebibyte);
  MR_EXPECT_EQ(use().reserved, 56 * kMebibyte);
  // A refused allocation does not change the statistics.
  MR_EXPECT(lane.stream->Allocate(lane.last + 1, 16 * kMebibyte).status().code() == StatusCode::kOutOfMemory);
  MR_EXPECT_EQ(use().used_high, 56 * kMebibyte);

  Free(lane, std::move(two));
  MR_EXPECT(device->ResetHighWater().ok());
  MR_EXPECT_EQ(use().used_high, 8 * kMebibyte);
  MR_EXPECT_EQ(use().reserved_high, 56 * kMebibyte);
  Free(lane, std::move(one));
  MR_EXPECT_EQ(use().used, 0u);
  MR_EXPECT_EQ(use().used_high, 8 * kMebibyte);
}

MR_TEST(TheThresholdSaysWhatIsKept) {
  auto device = OpenDevice(2, 4096 * kMebibyte);
  Lane lane(*device);
  const auto reserved = [&] { return device->PoolUse().value().reserved; };
  MR_EXPECT_EQ(device->ReleaseThreshold().value(), 256 * kMebibyte);
  Free(lane, Allocate(lane, 320 * kMebibyte));
  MR_EXPECT_EQ(reserved(), 0u);
  Free(lane, Allocate(lane, 256 * kMebibyte));
  MR_EXPECT_EQ(reserved(), 256 * kMebibyte);

  // A lower threshold frees the excess at once. With 0 every free returns its memory.
  auto one = Allocate(lane, 4 * kMebibyte);
  auto two = Allocate(lane, 8 * kMebibyte);
  MR_EXPECT(device->SetReleaseThreshold(8 * kMebibyte).ok());
  MR_EXPECT_EQ(device->ReleaseThreshold().value(), 8 * kMebibyte);
  MR_EXPECT_EQ(reserved(), 12 * kMebibyte);
  Free(lane, std::move(one));
  MR_EXPECT_EQ(reserved(), 12 * kMebibyte);
  Free(lane, std::move(two));
  MR_EXPECT_EQ(reserved(), 8 * kMebibyte);
  MR_EXPECT(device->SetReleaseThreshold(0).ok());
  MR_EXPECT_EQ(reserved(), 0u);
  Free(lane, Allocate(lane, 8 * kMebibyte));
  MR_EXPECT_EQ(reserved(), 0u);

  // Everything.
  MR_EXPECT(device->SetReleaseThreshold(~0ull).ok());
  Free(lane, Allocate(lane, 320 * kMebibyte));
  MR_EXPECT_EQ(reserved(), 320 * kMebibyte);
}

MR_TEST(TrimmingLeavesAtLeastWhatItIsTold) {
  auto device = OpenDevice(2, 256 * kMebibyte);
  Lane lane(*device);
  const auto reserved = [&] { return device->PoolUse().value().reserved; };
  auto used = Allocate(lane, 4 * kMebibyte);
  std::vector<std::unique_ptr<hal::Memory>> blocks;
  for (uint64_t size : {8, 16, 32}) blocks.push_back(Allocate(lane, size * kMebibyte));
  for (auto& block : blocks) Free(lane, std::move(block));
  MR_EXPECT_EQ(reserved(), 60 * kMebibyte);
  MR_EXPECT(device->Trim(60 * kMebibyte).ok());
  MR_EXPECT_EQ(reserved(), 60 * kMebibyte);
  // Freeing 28 would suffice; blocks of 16 and 8 fit into it.
  MR_EXPECT(device->Trim(32 * kMebibyte).ok());
  MR_EXPECT_EQ(reserved(), 36 * kMebibyte);
  MR_EXPECT(device->Trim(0).ok());
  MR_EXPECT_EQ(reserved(), 4 * kMebibyte);
  MR_EXPECT_EQ(device->PoolUse().value().used, 4 * kMebibyte);
  std::memset(used->address(), 1, 4 * kMebibyte);
  Free(lane, std::move(used));
}

}  // namespace
}  // namespace millrace
