// Freed interprocess memory, on the fake driver or on this machine's (see cuda_backend_test.cpp). Returning it waits
// for the device, so it happens when that takes no time, or when it must.
#include <thread>

#include "cuda_fixture.h"
#include "refused_threads.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

constexpr uint64_t kBlock = 2 << 20;
constexpr uint64_t kBytes = 8 * kBlock;

uint64_t Reserved(Opened& opened) {
  auto use = opened.device->PoolUse();
  MR_CHECK(use.ok());
  return use.value().reserved;
}

/// Whether some thread has checked more than once that the device is idle.
bool IsLookedAt() {
  if (!OnFake()) return true;
  constexpr int kLooks = 3;  // One stream at least is asked in each.
  const int questions = Questions(0);
  return Eventually([questions] { return Questions(0) >= questions + kLooks; });
}

/// A device with one stream that runs until the gate opens, and another, idle one.
struct Busy {
  Busy() : opened(0), held(opened.NewStream(0)), stream(opened.NewStream(1)), gate(opened) {
    before = opened.device->FreeBytes();
    frees = OnFake() ? Frees(0) : 0;
    waiting = OnFake() ? WaitingFrees(0) : 0;
    MR_CHECK(gate.Launch(*held, 1).ok());
  }
  ~Busy() {
    gate.Open();
    MR_CHECK(Finish(*held, 1));
  }

  std::unique_ptr<hal::Memory> Make(uint64_t bytes) {
    auto memory = opened.device->AllocateInterprocess(bytes);
    MR_CHECK(memory.ok());
    return std::move(memory).value();
  }
  /// Frees it, and returns when the library has seen the end of its last use. Otherwise fails the test and opens the
  /// gate.
  bool FreeAll(std::unique_ptr<hal::Memory> memory) {
    const uint64_t free_bytes = opened.device->FreeBytes();
    const bool is_seen = stream->Free(++ticket, std::move(memory)).ok() && Finish(*stream, ticket) &&
                         Eventually([&] { return opened.device->FreeBytes() > free_bytes; });
    if (!is_seen) gate.Open();
    return is_seen;
  }
  /// How often the driver was told to free, and waited.
  void ExpectFrees(int count, int waited) const {
    if (!OnFake()) return;
    MR_EXPECT_EQ(Frees(0) - frees, count);
    MR_EXPECT_EQ(WaitingFrees(0) - waiting, waited);
  }

  Opened opened;
  std::unique_ptr<hal::Stream> held;
  std::unique_ptr<hal::Stream> stream;
  Gate gate;
  Ticket ticket = 0;
  uint64_t before;
  int frees;
  int waiting;
};

MR_TEST(WhatIsFreedWhileTheDeviceWorksIsKept) {
  Busy busy;
  const uint64_t reserved = Reserved(busy.opened);
  MR_REQUIRE(busy.FreeAll(busy.Make(kBytes)));
  MR_EXPECT_EQ(busy.opened.device->FreeBytes(), busy.before);
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), kBytes);
  MR_EXPECT_EQ(Reserved(busy.opened) - reserved, kBytes);
  MR_EXPECT(IsLookedAt());
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), kBytes);
  busy.ExpectFrees(0, 0);
  MR_EXPECT_EQ(busy.held->Resolve(1).value(), 0u);
  // Then the device is idle, and no thread asks for anything.
  busy.gate.Open();
  MR_REQUIRE(Finish(*busy.held, 1));
  MR_EXPECT(Eventually([&] { return busy.opened.device->KeptBytes() == 0; }));
  MR_EXPECT(Eventually([&] { return !OnFake() || Frees(0) - busy.frees == 1; }));
  busy.ExpectFrees(1, 0);
  // A real driver has taken some for itself meanwhile.
  if (OnFake()) MR_EXPECT_EQ(busy.opened.device->FreeBytes(), busy.before);
  MR_EXPECT_EQ(Reserved(busy.opened), reserved);
}

MR_TEST(WithoutAThreadAnAllocationFindsWhatWasFreedAndTheNextFreeStartsTheThread) {
  Busy busy;
  auto memory = busy.Make(kBytes);
  std::byte* const address = memory->address();
  {
    const RefusedThreads refused("mr-reaper");
    MR_REQUIRE(busy.stream->Free(++busy.ticket, std::move(memory)).ok());
    MR_REQUIRE(Finish(*busy.stream, busy.ticket));
    MR_EXPECT_EQ(refused.count(), 1);
  }
  memory = busy.Make(kBytes);
  MR_EXPECT(memory->address() == address);
  MR_REQUIRE(busy.FreeAll(std::move(memory)));
}

MR_TEST(AnAllocationOfAboutThatSizeHasItAgain) {
  Busy busy;
  auto first = busy.Make(kBytes);
  std::byte* const address = first->address();
  MR_REQUIRE(busy.FreeAll(std::move(first)));
  // Much smaller: it would waste the rest. Larger: it does not fit.
  auto smaller = busy.Make(kBytes / 2);
  auto larger = busy.Make(kBytes + 1);
  MR_EXPECT(smaller->address() != address && larger->address() != address);
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), kBytes);
  auto nearly = busy.Make(kBytes - kBlock);
  MR_EXPECT(nearly->address() == address);
  MR_EXPECT_EQ(nearly->bytes(), kBytes - kBlock);
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), 0u);
  MR_REQUIRE(busy.FreeAll(std::move(nearly)));
  // All of it is still kept.
  auto whole = busy.Make(kBytes);
  MR_EXPECT(whole->address() == address);
  MR_EXPECT_EQ(whole->bytes(), kBytes);
  MR_REQUIRE(busy.FreeAll(std::move(whole)));
  MR_REQUIRE(busy.FreeAll(std::move(smaller)));
  MR_REQUIRE(busy.FreeAll(std::move(larger)));
  busy.ExpectFrees(0, 0);
}

MR_TEST(TheSmallestThatSuitsIsTaken) {
  Busy busy;
  auto large = busy.Make(9 * kBlock);
  auto small = busy.Make(8 * kBlock);
  std::byte* const address = small->address();
  MR_REQUIRE(busy.FreeAll(std::move(large)));
  MR_REQUIRE(busy.FreeAll(std::move(small)));
  auto taken = busy.Make(8 * kBlock);
  MR_EXPECT(taken->address() == address);
  MR_REQUIRE(busy.FreeAll(std::move(taken)));
}

MR_TEST(WhatWorkStillUsesIsNotUsedAgain) {
  Busy busy;
  auto memory = busy.Make(kBytes);
  std::byte* const address = memory->address();
  MR_REQUIRE(busy.held->Free(2, std::move(memory)).ok());  // Behind the gate.
  auto other = busy.Make(kBytes);
  MR_EXPECT(other->address() != address);
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), kBytes);
  MR_REQUIRE(busy.FreeAll(std::move(other)));
  busy.gate.Open();
  MR_REQUIRE(Finish(*busy.held, 2));
}

MR_TEST(ExportedMemoryIsKeptForNobody) {
  Busy busy;
  auto memory = busy.Make(kBytes);
  MR_REQUIRE(busy.opened.device->ExportMemory(*memory).ok());
  std::byte* const address = memory->address();
  MR_REQUIRE(busy.FreeAll(std::move(memory)));
  auto other = busy.Make(kBytes);
  MR_EXPECT(other->address() != address);
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), kBytes);
  busy.ExpectFrees(0, 0);
  MR_REQUIRE(busy.FreeAll(std::move(other)));
}

MR_TEST(TrimmingGivesItBackThoughItWaits) {
  Busy busy;
  MR_REQUIRE(busy.FreeAll(busy.Make(kBytes)));
  MR_REQUIRE(busy.FreeAll(busy.Make(2 * kBytes)));
  MR_EXPECT(busy.opened.device->Trim(UINT64_MAX).ok());
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), 3 * kBytes);
  std::thread trimming([&] { MR_CHECK(busy.opened.device->Trim(2 * kBytes).ok()); });
  if (OnFake()) {
    MR_EXPECT(Eventually([&] { return WaitingFrees(0) - busy.waiting == 1; }));
    // Other streams continue.
    MR_REQUIRE(busy.stream->Nop(++busy.ticket).ok());
    MR_REQUIRE(Finish(*busy.stream, busy.ticket));
  }
  busy.gate.Open();
  trimming.join();
  // The oldest one was freed.
  MR_EXPECT(busy.opened.device->KeptBytes() <= 2 * kBytes);
}

MR_TEST(HighWaterValuesCountIt) {
  Busy busy;
  MR_REQUIRE(busy.opened.device->ResetHighWater().ok());
  const uint64_t high = busy.opened.device->PoolUse().value().reserved_high;
  auto memory = busy.Make(kBytes);
  MR_EXPECT_EQ(busy.opened.device->PoolUse().value().reserved_high, high);
  MR_REQUIRE(busy.FreeAll(std::move(memory)));
  auto again = busy.Make(kBytes);
  MR_EXPECT_EQ(busy.opened.device->PoolUse().value().reserved_high, high + kBytes);
  MR_REQUIRE(busy.opened.device->ResetHighWater().ok());
  MR_EXPECT_EQ(busy.opened.device->PoolUse().value().reserved_high, high);
  MR_REQUIRE(busy.FreeAll(std::move(again)));
}

MR_TEST(AnAllocationGetsItBackBeforeItFails) {
  if (!OnFake()) return;
  Busy busy;
  const uint64_t most = busy.before / kBlock * kBlock;
  MR_REQUIRE(busy.FreeAll(busy.Make(kBytes)));
  // Only the kept memory is in the way; the driver waits for the gate before it frees it.
  std::unique_ptr<hal::Memory> memory;
  std::thread thread([&] { memory = busy.Make(most); });
  MR_EXPECT(Eventually([&] { return WaitingFrees(0) - busy.waiting == 1; }));
  busy.gate.Open();
  thread.join();
  MR_REQUIRE(memory != nullptr);
  MR_EXPECT_EQ(busy.opened.device->KeptBytes(), 0u);
  MR_REQUIRE(busy.FreeAll(std::move(memory)));
}

MR_TEST(NoMoreThanAPartOfTheDeviceIsKept) {
  if (!OnFake()) return;
  Busy busy;
  // A quarter of a device of 1 GiB.
  constexpr uint64_t kMost = 256 << 20;
  auto first = busy.Make(kMost);
  auto second = busy.Make(kBytes);
  MR_REQUIRE(busy.FreeAll(std::move(first)));
  busy.ExpectFrees(0, 0);
  MR_REQUIRE(busy.stream->Free(++busy.ticket, std::move(second)).ok());
  MR_EXPECT(Eventually([&] { return WaitingFrees(0) - busy.waiting == 1; }));
  busy.gate.Open();
  MR_EXPECT(Eventually([&] { return busy.opened.device->KeptBytes() == 0; }));
}

MR_TEST(AForeignStreamThatIsWrappedKeepsItToo) {
  if (!OnFake()) return;
  Opened opened(0);
  const auto create = FromDriverLibrary<int (*)(uint64_t*, unsigned, int)>("cuStreamCreateWithPriority");
  const auto destroy = FromDriverLibrary<int (*)(uint64_t)>("cuStreamDestroy");
  uint64_t handle = 0;
  MR_REQUIRE(create(&handle, 1, 0) == 0);
  auto stream = opened.NewStream(0);
  const int frees = Frees(0);
  const int waiting = WaitingFrees(0);
  {
    auto wrapped = opened.device->CreateStream({.priority = 0, .foreign = handle, .slot = &opened.slots[1]});
    MR_REQUIRE(wrapped.ok());
    Gate gate(opened);
    MR_REQUIRE(gate.Launch(*wrapped.value(), 1).ok());
    auto memory = opened.device->AllocateInterprocess(kBytes);
    MR_REQUIRE(memory.ok());
    MR_REQUIRE(stream->Free(1, std::move(memory).value()).ok());
    MR_REQUIRE(Finish(*stream, 1));
    MR_EXPECT(IsLookedAt());
    MR_EXPECT_EQ(Frees(0), frees);
    gate.Open();
    MR_REQUIRE(Finish(*wrapped.value(), 1));
  }
  MR_EXPECT(Eventually([&] { return Frees(0) == frees + 1; }));
  MR_EXPECT_EQ(WaitingFrees(0), waiting);
  MR_EXPECT_EQ(destroy(handle), 0);
}

MR_TEST(WorkThatNeverStopsComingIsNeverWaitedFor) {
  if (!OnFake()) return;
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned host(*opened.device, 64);
  const int waiting = WaitingFrees(0);
  const int frees = Frees(0);
  constexpr uint64_t kMost = 128 << 20;
  Ticket ticket = 0;
  // The device is briefly idle at times, and frees at those times wait for nothing.
  for (int round = 0; round < 400; ++round) {
    auto memory = opened.device->AllocateInterprocess(kBytes);
    MR_REQUIRE(memory.ok());
    std::byte* const address = memory.value()->address();
    MR_REQUIRE(stream->Fill(++ticket, address, 1, 7, 4096).ok());
    MR_REQUIRE(stream->Copy(++ticket, host.data, address, 64).ok());
    if (round % 2 == 0) MR_REQUIRE(opened.device->ExportMemory(*memory.value()).ok());
    MR_REQUIRE(stream->Free(++ticket, std::move(memory).value()).ok());
    if (round % 8 == 0) MR_REQUIRE(stream->Signal().ok());
    if (round % 20 == 0) MR_REQUIRE(Finish(*stream, ticket));
    // Far below the most that is kept.
    if (opened.device->KeptBytes() > kMost) MR_REQUIRE(Eventually([&] { return opened.device->KeptBytes() == 0; }));
  }
  MR_REQUIRE(Finish(*stream, ticket));
  MR_EXPECT(Frees(0) > frees);
  MR_EXPECT_EQ(WaitingFrees(0), waiting);
}

MR_TEST(ClosingGivesAllOfItBack) {
  uint64_t before = 0;
  {
    Busy busy;
    before = busy.before;
    MR_REQUIRE(busy.FreeAll(busy.Make(kBytes)));
  }
  Opened again(0);
  MR_EXPECT_EQ(again.device->FreeBytes(), before);
  MR_EXPECT_EQ(again.device->KeptBytes(), 0u);
}

}  // namespace
