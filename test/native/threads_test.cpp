// Devices and copies when the system refuses threads. cpu_cooperative_test.cpp tests those of cooperative
// launches, cuda_pageable_copies_test.cpp and cuda_deferred_frees_test.cpp those of the CUDA backend.
#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "channel_rig.h"
#include "cpu/device.h"
#include "refused_threads.h"
#include "runtime/host_copy.h"

namespace millrace::testing {
namespace {

Result<std::shared_ptr<Channel>> Open(RecordingBackend& backend) {
  auto timeline = std::make_shared<std::vector<protocol::TimelineSlot>>(protocol::kMaxStreams);
  return Registry::Instance().Open(backend,
                                   {.ordinal = 0, .timeline = *timeline, .max_pending = 1 << 20, .memory = timeline});
}

void ExpectRefused(Status status) {
  MR_EXPECT(status.code() == StatusCode::kUnavailable);
  MR_EXPECT_EQ(status.driver_code(), EAGAIN);
}

MR_TEST(a_refused_thread_is_a_status_and_the_next_one_runs) {
  std::atomic<bool> has_run{false};
  Thread thread;
  {
    const RefusedThreads refused("mr-test");
    ExpectRefused(thread.Start("mr-test", [&] { has_run = true; }));
    MR_EXPECT(!thread.joinable());
  }
  MR_EXPECT(thread.Start("mr-test", [&] { has_run = true; }).ok());
  Thread moved(std::move(thread));
  moved.Join();
  MR_EXPECT(has_run.load());
}

MR_TEST(a_device_does_not_open_without_its_channels_thread_and_is_closed_again) {
  RecordingBackend backend;
  {
    const RefusedThreads refused("mr-channel");
    ExpectRefused(Open(backend).status());
    MR_EXPECT_EQ(refused.count(), 1);
  }
  MR_EXPECT(backend.controls.log.Find("closes a") >= 0);
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, rig.Nop(a).ticket));
}

MR_TEST(a_copy_fails_without_the_thread_for_blocking_calls_and_the_next_one_tries_again) {
  RecordingBackend backend;
  backend.controls.needs_locked_memory = true;
  std::array<std::byte, 16> host{};
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 16);
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, false).ok());
  const Rig::End device{rig, Handle(0)};
  const Rig::End memory{rig, Handle(0), MemorySpace::kHost};
  {
    const RefusedThreads refused("mr-blocking");
    const Ticket copied = rig.Copy(a, device, memory, 16);
    MR_EXPECT(rig.Completes(a, copied));
    MR_REQUIRE(rig.Failures(a).size() == 1);
    MR_EXPECT(rig.Failures(a)[0].status.code() == StatusCode::kLaunchFailed);
    MR_EXPECT_EQ(rig.Failures(a)[0].status.driver_code(), EAGAIN);
    MR_EXPECT_EQ(refused.count(), 1);
  }
  host.fill(std::byte{3});
  MR_EXPECT(rig.Completes(a, rig.Copy(a, device, memory, 16)));
  MR_EXPECT_EQ(rig.Failures(a).size(), size_t{1});
  const auto* const bytes = reinterpret_cast<const std::byte*>(rig.channel->MemoryAddress(Handle(0)).value_or(0));
  MR_EXPECT(bytes[15] == std::byte{3});
}

MR_TEST(an_allocation_fails_without_the_thread_for_blocking_calls) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  {
    const RefusedThreads refused("mr-blocking");
    MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 16, protocol::AllocKind::kInterprocess)));
  }
  MR_REQUIRE(rig.Failures(a).size() == 1);
  MR_EXPECT_EQ(rig.Failures(a)[0].status.driver_code(), EAGAIN);
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(1), 16, protocol::AllocKind::kInterprocess)));
  MR_EXPECT_EQ(rig.Failures(a).size(), size_t{1});
}

MR_TEST(pieces_of_a_copy_into_fresh_memory_meet_wherever_it_begins) {
  constexpr size_t kHugePage = 2 << 20;
  std::vector<std::byte> src(3 * kHugePage + 77);
  for (size_t n = 0; n < src.size(); ++n) src[n] = static_cast<std::byte>(n * 31 + n / 4096);
  std::vector<std::byte> room(src.size() + 2 * kHugePage + 2);
  std::byte* const huge = room.data() + (kHugePage - reinterpret_cast<uintptr_t>(room.data()) % kHugePage);
  for (const size_t skew : {size_t{0}, size_t{1}, size_t{16}, kHugePage - 1}) {
    for (const size_t bytes : {size_t{0}, size_t{1}, kHugePage, kHugePage + 1, src.size()}) {
      std::fill(room.begin(), room.end(), std::byte{0xee});
      std::byte* const dst = huge + skew;
      CopyToFresh({dst, bytes}, {src.data(), bytes});
      MR_EXPECT(std::equal(dst, dst + bytes, src.begin()));
      MR_EXPECT(dst[-1] == std::byte{0xee} && dst[bytes] == std::byte{0xee});
    }
  }
}

MR_TEST(a_cpu_device_does_not_open_with_fewer_threads_than_it_has_cores) {
  hal::DeviceInfo info;
  info.multiprocessors = 3;
  info.total_memory_bytes = 1 << 20;
  const RefusedThreads refused("mr-cpu", 2);
  ExpectRefused(cpu::CpuDevice::Open(info).status());
  MR_EXPECT_EQ(refused.count(), 1);
}

}  // namespace
}  // namespace millrace::testing
