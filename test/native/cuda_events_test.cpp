// Events of the CUDA backend, its pool, and wrapped streams. Without arguments on the fake driver, else on this
// machine's with the named kernels (see cuda_backend_test.cpp).
#include <chrono>

#include "cuda/driver.h"
#include "cuda_fixture.h"
#include "fake_controls.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT
using protocol::EventKind;

std::unique_ptr<hal::EventHandle> NewEvent(Opened& opened, EventKind kind) {
  auto event_handle = opened.device->CreateEvent(kind);
  MR_CHECK(event_handle.ok());
  return std::move(event_handle).value();
}

MR_TEST(TimestampsMeasureWhatLiesBetween) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Gate gate(opened);
  auto start = NewEvent(opened, EventKind::kTiming);
  auto end = NewEvent(opened, EventKind::kTiming);
  // Neither was recorded, then one, then both but not reached.
  MR_EXPECT_EQ(Code(opened.device->Elapsed(*start, *end).status()), static_cast<int>(StatusCode::kState));
  MR_REQUIRE(stream->Record(1, *start).ok());
  MR_EXPECT_EQ(Code(opened.device->Elapsed(*start, *end).status()), static_cast<int>(StatusCode::kState));
  MR_REQUIRE(gate.Launch(*stream, 2).ok());
  MR_REQUIRE(stream->Record(3, *end).ok());
  MR_REQUIRE(Finish(*stream, 1));
  MR_EXPECT_EQ(Code(opened.device->Elapsed(*start, *end).status()), static_cast<int>(StatusCode::kState));
  const auto held_since = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - held_since < std::chrono::milliseconds(5)) std::this_thread::yield();
  gate.Open();
  MR_REQUIRE(Finish(*stream, 3));
  auto forwards = opened.device->Elapsed(*start, *end);
  auto backwards = opened.device->Elapsed(*end, *start);
  MR_REQUIRE(forwards.ok() && backwards.ok());
  const double milliseconds = forwards.value();
  MR_EXPECT(milliseconds >= 4.5);
  MR_EXPECT_EQ(backwards.value(), -milliseconds);
  MR_EXPECT_EQ(Code(opened.device->ExportEvent(*start).status()), static_cast<int>(StatusCode::kArgument));
}

MR_TEST(TimestampsAreReused) {
  if (!OnFake()) return;
  Opened opened(0);
  auto stream = opened.NewStream(0);
  MR_REQUIRE(stream->Nop(1).ok());
  Ticket ticket = 1;
  for (int round = 0; round < 50; ++round) {
    auto first = NewEvent(opened, EventKind::kTiming);
    auto second = NewEvent(opened, EventKind::kTiming);
    MR_REQUIRE(stream->Record(++ticket, *first).ok());
    MR_REQUIRE(stream->Record(++ticket, *second).ok());
    MR_REQUIRE(Finish(*stream, ticket));
    auto elapsed = opened.device->Elapsed(*first, *second);
    MR_REQUIRE(elapsed.ok());
    MR_EXPECT(elapsed.value() >= 0);
    // From now on none can be created.
    if (round == 0) FailCalls("cuEventCreate:0:2");
  }
  FailCalls("");
}

MR_TEST(AnInterprocessEventIsRecordedAgainAndAgain) {
  Opened opened(0);
  auto first = opened.NewStream(0);
  auto second = opened.NewStream(1);
  Gate gate(opened);
  Pinned host(*opened.device, 4);
  auto event_handle = NewEvent(opened, EventKind::kInterprocess);
  auto memory = first->Allocate(1, 4);
  MR_REQUIRE(memory.ok());
  std::byte* const address = memory.value()->address();
  // Never recorded: the wait does nothing.
  MR_REQUIRE(second->WaitEvent(1, *event_handle).ok());
  MR_EXPECT(Finish(*second, 1));
  MR_REQUIRE(first->Record(2, *event_handle).ok());
  MR_REQUIRE(Finish(*first, 2));
  MR_REQUIRE(gate.Launch(*first, 3).ok());
  MR_REQUIRE(first->Fill(4, address, 4, 7, 1).ok());
  MR_REQUIRE(first->Record(5, *event_handle).ok());
  // The last record counts.
  MR_REQUIRE(second->WaitEvent(2, *event_handle).ok());
  MR_REQUIRE(second->Copy(3, host.data, address, 4).ok());
  MR_EXPECT_EQ(second->Resolve(3).value(), 1u);
  gate.Open();
  MR_REQUIRE(Finish(*second, 3));
  MR_EXPECT_EQ(*host.As<unsigned>(), 7u);
  const auto measured = opened.device->Elapsed(*event_handle, *event_handle).status();
  MR_EXPECT_EQ(Code(measured), static_cast<int>(StatusCode::kArgument));
  MR_REQUIRE(first->Free(6, std::move(memory).value()).ok());
  MR_EXPECT(Finish(*first, 6));
}

MR_TEST(ThePoolTellsWhatIsUsedAndKept) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  hal::Device& device = *opened.device;
  MR_REQUIRE(device.ReleaseThreshold().ok());
  // Otherwise each synchronization would unmap what is freed.
  MR_EXPECT_EQ(device.ReleaseThreshold().value(), device.info().total_memory_bytes / 8 * 7);
  MR_REQUIRE(device.SetReleaseThreshold(64 << 20).ok());
  MR_EXPECT_EQ(device.ReleaseThreshold().value(), 64u << 20);
  MR_REQUIRE(device.ResetHighWater().ok());
  auto stats = device.PoolUse();
  MR_REQUIRE(stats.ok());
  const hal::PoolStats before = stats.value();
  MR_EXPECT_EQ(before.used_high, before.used);
  MR_EXPECT_EQ(before.total, device.info().total_memory_bytes);

  constexpr uint64_t kBytes = 32 << 20;
  auto memory = stream->Allocate(1, kBytes);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(Finish(*stream, 1));
  const hal::PoolStats during = device.PoolUse().value();
  MR_EXPECT_EQ(during.used - before.used, kBytes);
  MR_EXPECT(during.reserved >= during.used);
  MR_EXPECT(during.free <= before.free);
  MR_REQUIRE(stream->Free(2, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
  // The pool keeps memory up to the threshold, and keeps its high-water mark.
  const hal::PoolStats after = device.PoolUse().value();
  MR_EXPECT_EQ(after.used, before.used);
  MR_EXPECT_EQ(after.used_high, during.used);
  MR_EXPECT(after.reserved >= kBytes);
  MR_EXPECT(after.reserved_high >= after.reserved);
  MR_EXPECT(device.FreeBytes() >= after.free + kBytes);
  MR_REQUIRE(device.Trim(0).ok());
  MR_REQUIRE(device.ResetHighWater().ok());
  const hal::PoolStats trimmed = device.PoolUse().value();
  // A driver gives back whole blocks of its own size, which others may have a part of.
  MR_EXPECT(trimmed.reserved <= after.reserved);
  if (OnFake()) {
    MR_EXPECT(trimmed.reserved < kBytes);
    MR_EXPECT(trimmed.free >= after.free + kBytes);
  }
  MR_EXPECT_EQ(trimmed.used_high, trimmed.used);
  MR_EXPECT_EQ(trimmed.reserved_high, trimmed.reserved);
  MR_EXPECT(device.SetReleaseThreshold(0).ok());
}

MR_TEST(EveryPriorityOfTheRangeIsHonoured) {
  Opened opened(0);
  using GetPriority = cuda::CUresult (*)(cuda::CUstream, int*);
  const auto get_priority = FromDriverLibrary<GetPriority>("cuStreamGetPriority");
  const hal::DeviceInfo& info = opened.device->info();
  MR_REQUIRE(info.greatest_priority < info.least_priority);
  for (int32_t priority = info.greatest_priority; priority <= info.least_priority; ++priority) {
    auto stream = opened.NewStream(0, priority);
    int seen = 99;
    MR_EXPECT_EQ(static_cast<int>(get_priority(reinterpret_cast<cuda::CUstream>(stream->NativeHandle()), &seen)), 0);
    MR_EXPECT_EQ(seen, priority);
  }
}

// ── Wrapped streams ──────────────────────────────────────────────────────────────────────────────────────────────────

Result<std::unique_ptr<hal::Stream>> Wrap(Opened& opened, uint64_t handle) {
  return opened.device->CreateStream({.priority = 0, .foreign = handle, .slot = &opened.slots[2], .sink = nullptr});
}

MR_TEST(AForeignStreamIsUsedAndLeftAlone) {
  Opened opened(0);
  cuda::CUstream theirs = nullptr;
  MR_REQUIRE(cuda::Cuda().cuStreamCreateWithPriority(&theirs, cuda::CU_STREAM_NON_BLOCKING, 0) == cuda::CUDA_SUCCESS);
  Pinned host(*opened.device, 8);
  cuda::CUdeviceptr memory = 0;
  MR_REQUIRE(cuda::Cuda().cuMemAlloc(&memory, 4) == cuda::CUDA_SUCCESS);
  const auto* const address = reinterpret_cast<const std::byte*>(memory);
  {
    auto wrapped = Wrap(opened, reinterpret_cast<uintptr_t>(theirs));
    MR_REQUIRE(wrapped.ok());
    hal::Stream& stream = *wrapped.value();
    MR_EXPECT_EQ(stream.NativeHandle(), reinterpret_cast<uintptr_t>(theirs));
    // Work of ours follows theirs, and theirs ours, in the order of the calls.
    MR_REQUIRE(cuda::Cuda().cuMemsetD32Async(memory, 5, 1, theirs) == cuda::CUDA_SUCCESS);
    MR_REQUIRE(stream.Copy(1, host.data, address, 4).ok());
    MR_REQUIRE(cuda::Cuda().cuMemsetD32Async(memory, 6, 1, theirs) == cuda::CUDA_SUCCESS);
    MR_REQUIRE(stream.Copy(2, host.data + 4, address, 4).ok());
    MR_REQUIRE(stream.Signal().ok());
    MR_EXPECT(Finish(stream, 2));
    MR_EXPECT_EQ(host.As<unsigned>()[0], 5u);
    MR_EXPECT_EQ(host.As<unsigned>()[1], 6u);
  }
  MR_EXPECT(cuda::Cuda().cuStreamSynchronize(theirs) == cuda::CUDA_SUCCESS);
  MR_EXPECT(cuda::Cuda().cuMemFree(memory) == cuda::CUDA_SUCCESS);
  MR_EXPECT(cuda::Cuda().cuStreamDestroy(theirs) == cuda::CUDA_SUCCESS);
}

MR_TEST(LettingGoOfAForeignStreamWaitsForOurWordAlone) {
  Opened opened(0);
  cuda::CUstream theirs = nullptr;
  MR_REQUIRE(cuda::Cuda().cuStreamCreateWithPriority(&theirs, cuda::CU_STREAM_NON_BLOCKING, 0) == cuda::CUDA_SUCCESS);
  Gate gate(opened);
  auto ours = Wrap(opened, reinterpret_cast<uintptr_t>(theirs));
  auto again = opened.device->CreateStream(
      {.priority = 0, .foreign = reinterpret_cast<uintptr_t>(theirs), .slot = &opened.slots[3], .sink = nullptr});
  MR_REQUIRE(ours.ok() && again.ok());
  MR_REQUIRE(ours.value()->Nop(1).ok());
  MR_REQUIRE(ours.value()->Signal().ok());
  // The second stream stands for other code whose work continues.
  MR_REQUIRE(gate.Launch(*again.value(), 1).ok());
  ours = Status();
  MR_EXPECT_EQ(std::atomic_ref(opened.slots[2].device_word).load(), 1u);
  gate.Open();
  MR_REQUIRE(Finish(*again.value(), 1));
  again = Status();
  MR_EXPECT(cuda::Cuda().cuStreamDestroy(theirs) == cuda::CUDA_SUCCESS);
}

MR_TEST(TheDefaultStreamIsNamedByZero) {
  Opened opened(0);
  Pinned host(*opened.device, 8);
  host.As<unsigned>()[0] = 9;
  auto wrapped = Wrap(opened, 0);
  MR_REQUIRE(wrapped.ok());
  MR_EXPECT_EQ(wrapped.value()->NativeHandle(), 0u);
  MR_REQUIRE(wrapped.value()->Copy(1, host.data + 4, host.data, 4).ok());
  MR_EXPECT(Finish(*wrapped.value(), 1));
  MR_EXPECT_EQ(host.As<unsigned>()[1], 9u);
}

MR_TEST(StreamsThatMayNotBeWrappedAreRefused) {
  Opened opened(0);
  auto own = opened.NewStream(0);
  MR_EXPECT(own->NativeHandle() != 0);
  MR_EXPECT_EQ(Code(Wrap(opened, own->NativeHandle()).status()), static_cast<int>(StatusCode::kArgument));
  MR_EXPECT_EQ(Code(Wrap(opened, 2).status()), static_cast<int>(StatusCode::kUnsupported));
  if (Cuda().Enumerate().devices.size() > 1) {
    Opened other(1);
    cuda::CUstream theirs = nullptr;
    MR_REQUIRE(cuda::Cuda().cuStreamCreateWithPriority(&theirs, cuda::CU_STREAM_NON_BLOCKING, 0) == cuda::CUDA_SUCCESS);
    MR_REQUIRE(opened.device->BindChannelThread().ok());
    MR_EXPECT_EQ(Code(Wrap(opened, reinterpret_cast<uintptr_t>(theirs)).status()),
                 static_cast<int>(StatusCode::kArgument));
    MR_REQUIRE(other.device->BindChannelThread().ok());
    MR_EXPECT(cuda::Cuda().cuStreamDestroy(theirs) == cuda::CUDA_SUCCESS);
  }
  MR_REQUIRE(opened.device->BindChannelThread().ok());
}

}  // namespace
