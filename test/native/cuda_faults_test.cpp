// The CUDA backend when driver calls fail, on the fake driver, which fails them on request.
//
// A lost device is lost for the process, so the cases that lose one come last, each with its own device.
#include "cuda_fixture.h"
#include "fake_controls.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

MR_TEST(EventsAreReused) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  FailCalls("cuEventCreate:8:2");
  for (Ticket ticket = 1; ticket <= 3000; ++ticket) {
    MR_REQUIRE(stream->Nop(ticket).ok());
    if (ticket % 4 == 0) MR_REQUIRE(Finish(*stream, ticket));
  }
  FailCalls("");
}

MR_TEST(AFailedCallLeavesItsTicketOpen) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto memory = stream->Allocate(1, 64);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(Finish(*stream, 1));
  FailCalls("cuMemsetD8Async:1:1,cuEventCreate:1:2");
  // The fill fails and gives its event back, which the second try takes.
  const Status fill = stream->Fill(2, memory.value()->address(), 1, 0, 64);
  MR_EXPECT_EQ(static_cast<int>(fill.code()), static_cast<int>(StatusCode::kLaunchFailed));
  MR_EXPECT(stream->Fill(2, memory.value()->address(), 1, 0, 64).ok());
  // So the next record needs another event, and that one cannot be made.
  const Status nop = stream->Nop(3);
  MR_EXPECT_EQ(static_cast<int>(nop.code()), static_cast<int>(StatusCode::kOutOfMemory));
  MR_EXPECT(stream->Nop(3).ok());
  MR_EXPECT(Finish(*stream, 3));
  FailCalls("");
  MR_EXPECT(stream->Free(4, std::move(memory).value()).ok());
  MR_EXPECT(Finish(*stream, 4));
}

MR_TEST(OpeningThatFailsHalfWayLeavesTheDeviceToBeOpenedAgain) {
  alignas(4096) static TimelineSlot slots[64];
  FailCalls("cuMemHostRegister:1:2");
  const auto failed = Cuda().Open(1, slots);
  MR_EXPECT_EQ(static_cast<int>(failed.status().code()), static_cast<int>(StatusCode::kOutOfMemory));
  FailCalls("");
  MR_EXPECT(Cuda().Open(1, slots).ok());
}

// Rule 9.
MR_TEST(AFaultLosesTheDevice) {
  Opened healthy(1);
  {
    Opened opened(0);
    auto stream = opened.NewStream(0);
    Gate gate(opened);
    FailCalls("kernel:1:700");
    // The fault may be faster than the end of the call that queued the kernel.
    const Status launched = gate.Launch(*stream, 1);
    MR_EXPECT(launched.ok() || launched.code() == StatusCode::kDeviceLost);
    MR_EXPECT(Eventually([&] { return !stream->Resolve(1).ok(); }));
    const Status lost = stream->Resolve(1).status();
    MR_EXPECT_EQ(static_cast<int>(lost.code()), static_cast<int>(StatusCode::kDeviceLost));
    MR_EXPECT_EQ(lost.driver_code(), 700);
    MR_EXPECT_EQ(static_cast<int>(stream->Nop(2).code()), static_cast<int>(StatusCode::kDeviceLost));
    MR_EXPECT_EQ(static_cast<int>(stream->Signal().code()), static_cast<int>(StatusCode::kDeviceLost));
    MR_EXPECT_EQ(stream->Completed(), 0u);
    const auto load = opened.device->LoadKernel({.image = kernel_image, .entry = "axpy"}).status();
    MR_EXPECT_EQ(static_cast<int>(load.code()), static_cast<int>(StatusCode::kDeviceLost));

    // The other device continues: only its waits for the lost device fail.
    MR_REQUIRE(healthy.device->BindChannelThread().ok());
    auto other = healthy.NewStream(0);
    const Status waited = other->Wait(1, *stream, 1);
    MR_EXPECT_EQ(static_cast<int>(waited.code()), static_cast<int>(StatusCode::kUpstream));
    MR_EXPECT(other->Nop(1).ok());
    MR_EXPECT(Finish(*other, 1));
    const auto slots = opened.device->AllocateFaultSlots(1).status();
    MR_EXPECT_EQ(static_cast<int>(slots.code()), static_cast<int>(StatusCode::kDeviceLost));
    MR_EXPECT_EQ(opened.device->FreeBytes(), 0u);
  }
  const auto again = Cuda().Open(0, {}).status();
  MR_EXPECT_EQ(static_cast<int>(again.code()), static_cast<int>(StatusCode::kDeviceLost));
  MR_EXPECT_EQ(again.driver_code(), 700);
  FailCalls("");
}

MR_TEST(ASubmittingCallThatReportsAFaultLosesTheDevice) {
  Opened opened(1);
  auto stream = opened.NewStream(0);
  auto kernel = opened.Load("shared_sum");
  FailCalls("cuLaunchKernel:1:719");
  int n = 0;
  unsigned* out = nullptr;
  void* params[] = {&out, &n};
  const Status status =
      stream->Launch(1, {.kernel = kernel.get(), .grid = {}, .block = {}, .shared_bytes = 0, .params = params});
  MR_EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(StatusCode::kDeviceLost));
  MR_EXPECT_EQ(static_cast<int>(stream->Resolve(1).status().code()), static_cast<int>(StatusCode::kDeviceLost));
}

}  // namespace
