// The driver streams behind the CUDA backend's streams, across creation and closing: on the fake driver or on this
// machine's (see cuda_backend_test.cpp).
#include <algorithm>
#include <set>

#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/own_streams.h"
#include "cuda_fixture.h"
#include "fake_controls.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

/// The driver reports a stream as idle a moment after the last work's effects are visible, and a stream with work is
/// not reused.
bool IsIdle(uint64_t handle) {
  return Eventually(
      [&] { return cuda::Cuda().cuStreamQuery(reinterpret_cast<cuda::CUstream>(handle)) == cuda::CUDA_SUCCESS; });
}

/// A stream that an earlier test left busy would be taken later than newer ones.
bool AreAllIdle(Opened& opened) {
  cuda::Context& context = *static_cast<cuda::Device&>(*opened.device).context();
  return Eventually([&] { return cuda::OwnStreams().AreIdle(context); });
}

/// Opens a stream, gives it work, waits for it and closes it. Returns its handle.
uint64_t Round(Opened& opened, int slot, int32_t priority = 0) {
  auto stream = opened.NewStream(slot, priority);
  const uint64_t handle = stream->NativeHandle();
  const Ticket first = opened.slots[slot].host_word + 1;
  MR_EXPECT(stream->Nop(first).ok());
  MR_EXPECT(Finish(*stream, first));
  MR_EXPECT(IsIdle(handle));
  return handle;
}

MR_TEST(StreamsOneAfterAnotherAreOneOfTheDriver) {
  std::set<uint64_t> handles;
  {
    Opened opened(0);
    for (int i = 0; i < 200; ++i) handles.insert(Round(opened, i % 4));
  }
  // The context is kept when a device closes, so its streams are.
  Opened again(0);
  for (int i = 0; i < 10; ++i) handles.insert(Round(again, i % 4));
  MR_EXPECT_EQ(handles.size(), 1u);
}

// Two streams over one driver stream would each assume that only their own work is in it.
MR_TEST(NoTwoOpenStreamsAreTheSame) {
  Opened opened(0);
  Opened same(0);
  MR_REQUIRE(AreAllIdle(opened));
  std::vector<std::unique_ptr<hal::Stream>> open;
  std::set<uint64_t> now;
  std::set<uint64_t> ever;
  size_t most = 0;
  uint32_t dice = 12345;
  for (int i = 0; i < 2000; ++i) {
    dice = dice * 1664525 + 1013904223;
    if (open.size() < 20 && (open.empty() || (dice >> 16) % 2 == 0)) {
      open.push_back(((dice >> 20) % 2 == 0 ? opened : same).NewStream(0));
      MR_REQUIRE(now.insert(open.back()->NativeHandle()).second);
      ever.insert(open.back()->NativeHandle());
    } else {
      std::swap(open[(dice >> 20) % open.size()], open.back());
      now.erase(open.back()->NativeHandle());
      open.pop_back();
    }
    most = std::max(most, open.size());
  }
  // One existed before: no more were created than were open at once.
  MR_EXPECT_EQ(ever.size(), most);
}

// The driver assigns queues in creation order, so the first streams have separate queues.
MR_TEST(TheFirstMadeIsTheFirstUsedAgain) {
  Opened opened(0);
  MR_REQUIRE(AreAllIdle(opened));
  std::vector<std::unique_ptr<hal::Stream>> open;
  std::vector<uint64_t> handles;
  for (int i = 0; i < 40; ++i) {
    open.push_back(opened.NewStream(0));
    handles.push_back(open.back()->NativeHandle());
  }
  std::reverse(open.begin(), open.end());
  for (auto& stream : open) stream.reset();
  MR_REQUIRE(AreAllIdle(opened));
  for (int i = 0; i < 40; ++i) {
    open[i] = opened.NewStream(0);
    MR_EXPECT_EQ(open[i]->NativeHandle(), handles[i]);
  }
}

MR_TEST(PrioritiesAreKeptApart) {
  Opened opened(0);
  using GetPriority = cuda::CUresult (*)(cuda::CUstream, int*);
  const auto get_priority = FromDriverLibrary<GetPriority>("cuStreamGetPriority");
  const hal::DeviceInfo& info = opened.device->info();
  std::set<uint64_t> handles;
  for (int round = 0; round < 3; ++round) {
    for (int32_t priority = info.greatest_priority; priority <= info.least_priority; ++priority) {
      const uint64_t handle = Round(opened, 0, priority);
      handles.insert(handle);
      int seen = 99;
      MR_EXPECT_EQ(static_cast<int>(get_priority(reinterpret_cast<cuda::CUstream>(handle), &seen)), 0);
      MR_EXPECT_EQ(seen, priority);
    }
  }
  MR_EXPECT_EQ(handles.size(), static_cast<size_t>(info.least_priority - info.greatest_priority + 1));
}

// Foreign code with a stream's handle may have submitted work that its owner does not know.
MR_TEST(AStreamThatHasWorkIsNotUsedAgain) {
  Opened opened(0);
  MR_REQUIRE(AreAllIdle(opened));
  Gate gate(opened);
  auto first = opened.NewStream(0);
  const uint64_t handle = first->NativeHandle();
  Pinned host(*opened.device, 4);
  cuda::CUevent open_gate = nullptr;
  MR_REQUIRE(cuda::Cuda().cuEventCreate(&open_gate, cuda::CU_EVENT_DISABLE_TIMING) == cuda::CUDA_SUCCESS);
  auto held = opened.NewStream(1);
  MR_REQUIRE(gate.Launch(*held, 1).ok());
  MR_REQUIRE(cuda::Cuda().cuEventRecord(open_gate, reinterpret_cast<cuda::CUstream>(held->NativeHandle())) ==
             cuda::CUDA_SUCCESS);
  const auto theirs = reinterpret_cast<cuda::CUstream>(handle);
  MR_REQUIRE(cuda::Cuda().cuStreamWaitEvent(theirs, open_gate, 0) == cuda::CUDA_SUCCESS);
  first.reset();
  auto second = opened.NewStream(0);
  MR_EXPECT(second->NativeHandle() != handle);
  MR_REQUIRE(second->Nop(1).ok());
  MR_EXPECT(Finish(*second, 1));
  gate.Open();
  MR_REQUIRE(Finish(*held, 1));
  MR_REQUIRE(IsIdle(handle));
  auto third = opened.NewStream(2);
  MR_EXPECT_EQ(third->NativeHandle(), handle);
  MR_EXPECT(cuda::Cuda().cuEventDestroy(open_gate) == cuda::CUDA_SUCCESS);
}

MR_TEST(AClosedStreamIsStillNobodyElses) {
  Opened opened(0);
  const uint64_t handle = Round(opened, 0);
  auto wrapped =
      opened.device->CreateStream({.priority = 0, .foreign = handle, .slot = &opened.slots[1], .sink = nullptr});
  MR_EXPECT_EQ(static_cast<int>(wrapped.status().code()), static_cast<int>(StatusCode::kArgument));
}

MR_TEST(MoreThanAFewDozenAreNotKept) {
  if (!OnFake()) return;
  Opened opened(0);
  MR_REQUIRE(AreAllIdle(opened));
  std::vector<std::unique_ptr<hal::Stream>> open;
  std::vector<uint64_t> first;
  for (int i = 0; i < 200; ++i) {
    open.push_back(opened.NewStream(0));
    first.push_back(open.back()->NativeHandle());
  }
  open.clear();
  open = TakeKept(opened);
  // Streams of other priorities are included.
  MR_EXPECT(open.size() >= 32 && open.size() <= 64);
  for (size_t i = 0; i < open.size(); ++i) MR_EXPECT_EQ(open[i]->NativeHandle(), first[i]);
}

// Loses device 1, so it runs last.
MR_TEST(NothingOfALostDeviceIsUsedAgain) {
  if (!OnFake()) return;
  Opened opened(1);
  Round(opened, 0);
  auto stream = opened.NewStream(1);
  Gate gate(opened);
  FailCalls("kernel:1:700");
  std::ignore = gate.Launch(*stream, 1);
  MR_EXPECT(Eventually([&] { return !stream->Check().ok(); }));
  FailCalls("");
  stream.reset();
  auto refused = opened.device->CreateStream({.priority = 0, .slot = &opened.slots[0], .sink = nullptr});
  MR_EXPECT_EQ(static_cast<int>(refused.status().code()), static_cast<int>(StatusCode::kDeviceLost));
}

}  // namespace
