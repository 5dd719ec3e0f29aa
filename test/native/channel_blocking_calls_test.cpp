// Work that a channel gives to its blocking-calls thread: copies of pageable host memory, and allocations that block.
// The stream waits, the channel does not, and no memory in use by the blocking-calls thread is freed.
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

using protocol::AllocKind;

/// A device that needs page-locked memory, with 16 bytes of device memory and 16 bytes of pageable host memory.
struct PageableRig {
  explicit PageableRig(RecordingBackend& backend, uint32_t ordinal = 0) : controls(backend.controls) {
    controls.needs_locked_memory = true;
    rig = std::make_unique<Rig>(backend, ordinal);
    a = rig->Stream();
    rig->Alloc(a, Handle(0), 16);
    host.fill(std::byte{7});
    MR_EXPECT(rig->channel->RegisterHost(Handle(0), host, false).ok());
    MR_EXPECT(rig->Completes(a, 2));
  }
  [[nodiscard]] Rig::End Device() const { return {*rig, Handle(0)}; }
  [[nodiscard]] Rig::End Host() const { return {*rig, Handle(0), MemorySpace::kHost}; }
  [[nodiscard]] bool IsInBlockingCall() const {
    return Eventually([&] { return controls.blocking_calls.waiting.load() == 1; });
  }
  std::byte* Memory() { return reinterpret_cast<std::byte*>(rig->channel->MemoryAddress(Handle(0)).value_or(0)); }

  BackendControls& controls;
  std::array<std::byte, 16> host{};
  std::unique_ptr<Rig> rig;
  uint32_t a = 0;
};

MR_TEST(the_blocking_calls_thread_copies_once_the_stream_ran_what_came_before_and_the_channel_goes_on) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  Rig& rig = *pageable.rig;
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, 1));
  backend.controls.completes_at_once = false;
  backend.controls.blocking_calls.is_shut = true;
  const Ticket before = rig.Nop(pageable.a).ticket;
  const Ticket copied = rig.Copy(pageable.a, pageable.Device(), pageable.Host(), 16);
  const Ticket after = rig.Nop(pageable.a).ticket;
  MR_EXPECT(rig.Parks(pageable.a, ParkReason::kBlockingCall));
  MR_EXPECT(std::string(ParkReasonName(ParkReason::kBlockingCall)) == "transfer");
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  backend.controls.log.Add("what came before ends");
  rig.Backend(0).Complete(before);
  MR_EXPECT(pageable.IsInBlockingCall());
  MR_EXPECT(backend.controls.log.Find("what came before ends") < backend.controls.log.Find("a0 copies pageable 16"));
  backend.controls.completes_at_once = true;
  MR_EXPECT(rig.Completes(b, rig.Nop(b).ticket));
  rig.channel->WakeStream(pageable.a);  // For nothing.
  MR_EXPECT(rig.Completes(b, rig.Nop(b).ticket));
  MR_EXPECT(rig.Completed(pageable.a) < copied);
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(rig.Completes(pageable.a, after));
  MR_EXPECT(std::memcmp(pageable.Memory(), pageable.host.data(), 16) == 0);
  MR_EXPECT(rig.Failures(pageable.a).empty());
  // And back.
  pageable.Memory()[3] = std::byte{9};
  MR_EXPECT(rig.Completes(pageable.a, rig.Copy(pageable.a, pageable.Host(), pageable.Device(), 16)));
  MR_EXPECT(pageable.host[3] == std::byte{9});
}

MR_TEST(a_device_that_reaches_all_host_memory_needs_no_blocking_calls_thread) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  std::array<std::byte, 16> host{};
  rig.Alloc(a, Handle(0), 16);
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, false).ok());
  const Ticket copied = rig.Copy(a, Handle(0), Handle(0), 16, MemorySpace::kHost);
  MR_EXPECT(rig.Completes(a, copied));
  MR_EXPECT(backend.controls.log.Find("a0 3 copy") >= 0);
}

MR_TEST(page_locked_memory_is_not_copied_by_the_blocking_calls_thread_and_two_places_of_the_host_need_no_device) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  Rig& rig = *pageable.rig;
  std::array<std::byte, 16> pinned{};
  MR_EXPECT(rig.channel->RegisterHost(Handle(1), pinned, true).ok());
  const Ticket locked = rig.Copy(pageable.a, pageable.Device(), {rig, Handle(1), MemorySpace::kHost}, 16);
  MR_EXPECT(rig.Completes(pageable.a, locked));
  MR_EXPECT(backend.controls.log.Find("a0 " + std::to_string(locked) + " copy") >= 0);
  const Ticket within = rig.Copy(pageable.a, {rig, Handle(1), MemorySpace::kHost}, pageable.Host(), 16);
  MR_EXPECT(rig.Completes(pageable.a, within));
  MR_EXPECT(pinned[15] == std::byte{7});
  MR_EXPECT(backend.controls.log.Find("a0 copies pageable 16") == -1);
}

MR_TEST(a_pageable_copy_that_fails_poisons_and_one_that_does_not_clears) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  Rig& rig = *pageable.rig;
  backend.controls.refuse_blocking_calls = 1;
  const Ticket failed = rig.Copy(pageable.a, pageable.Device(), pageable.Host(), 16);
  const Ticket read = rig.Copy(pageable.a, pageable.Host(), pageable.Device(), 16);
  MR_EXPECT(rig.Completes(pageable.a, read));
  const auto failures = rig.Failures(pageable.a);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[0].first == failed && failures[0].status.code() == StatusCode::kLaunchFailed);
  MR_EXPECT(failures[0].status.driver_code() == 8 && failures[1].cause == failures[0].id);
  rig.Copy(pageable.a, pageable.Device(), pageable.Host(), 16);
  MR_EXPECT(rig.Completes(pageable.a, rig.Copy(pageable.a, pageable.Host(), pageable.Device(), 16)));
  MR_EXPECT(rig.Failures(pageable.a).size() == 2);
}

MR_TEST(a_pageable_copy_of_a_lost_device_fails_of_that) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  PageableRig other(backend, 1);
  // The backend's report about the device at the other end.
  backend.controls.blocking_call_refusal = StatusCode::kUpstream;
  backend.controls.refuse_blocking_calls = 1;
  const Ticket copied = pageable.rig->Copy(pageable.a, pageable.Device(), other.Host(), 16);
  MR_EXPECT(pageable.rig->Completes(pageable.a, copied));
  const auto failures = pageable.rig->Failures(pageable.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].status.code() == StatusCode::kDeviceLost && failures[0].cause == 0);
  MR_EXPECT(pageable.rig->channel->LostStatus() == StatusCode::kOk);
}

MR_TEST(a_channel_that_is_given_up_takes_nothing_away_under_its_blocking_calls_thread) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  backend.controls.blocking_calls.is_shut = true;
  pageable.rig->Copy(pageable.a, pageable.Device(), pageable.Host(), 16);
  MR_EXPECT(pageable.IsInBlockingCall());
  const std::weak_ptr<Channel> watched = pageable.rig->channel;
  pageable.rig->channel->Abandon(std::chrono::milliseconds(1));
  std::thread ending([&] { pageable.rig.reset(); });
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  MR_EXPECT(backend.controls.log.Find("ends a0") == -1 && backend.controls.log.Find("closes a") == -1);
  backend.controls.blocking_calls.is_shut = false;
  ending.join();
  MR_EXPECT(Eventually([&] { return watched.expired(); }));
}

MR_TEST(a_long_copy_is_given_up_part_of_the_way) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  Rig& rig = *pageable.rig;
  constexpr uint64_t kBytes = 600ull << 20;
  const RecordingMemory host(kBytes);
  rig.Alloc(pageable.a, Handle(1), kBytes);
  MR_EXPECT(rig.channel->RegisterHost(Handle(1), {host.address(), kBytes}, false).ok());
  const Rig::End dst{rig, Handle(1)};
  const Rig::End src{rig, Handle(1), MemorySpace::kHost};
  MR_EXPECT(rig.Completes(pageable.a, rig.Copy(pageable.a, dst, src, kBytes)));
  const size_t whole = backend.controls.log.Size();
  MR_EXPECT(backend.controls.log.Find("a0 copies pageable " + std::to_string(kBytes % (256 << 20))) >= 0);
  backend.controls.blocking_calls.is_shut = true;
  rig.Copy(pageable.a, dst, src, kBytes);
  MR_EXPECT(pageable.IsInBlockingCall());
  rig.channel->Abandon(std::chrono::milliseconds(0));
  backend.controls.blocking_calls.is_shut = false;
  rig.channel->Close();
  int pieces = 0;
  const auto lines = backend.controls.log.Lines();
  for (size_t n = whole; n < lines.size(); ++n) pieces += lines[n].find("copies pageable") != std::string::npos ? 1 : 0;
  MR_EXPECT_EQ(pieces, 1);
}

MR_TEST(a_device_keeps_memory_that_the_blocking_calls_thread_of_another_uses) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  PageableRig other(backend, 1);
  backend.controls.blocking_calls.is_shut = true;
  const Ticket copied = pageable.rig->Copy(pageable.a, pageable.Device(), other.Host(), 16);
  MR_EXPECT(pageable.IsInBlockingCall());
  std::thread closing([&] { other.rig->channel->Close(); });
  MR_EXPECT(pageable.rig->Logs("ends b0"));
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  MR_EXPECT(backend.controls.log.Find("closes b") == -1);
  backend.controls.blocking_calls.is_shut = false;
  closing.join();
  MR_EXPECT(pageable.rig->Completes(pageable.a, copied));
  MR_EXPECT(pageable.rig->Failures(pageable.a).empty());
}

MR_TEST(a_device_keeps_memory_that_the_blocking_calls_thread_of_a_lost_one_still_uses) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  PageableRig other(backend, 1);
  backend.controls.blocking_calls.is_shut = true;
  pageable.rig->Copy(pageable.a, pageable.Device(), other.Host(), 16);
  MR_EXPECT(pageable.IsInBlockingCall());
  pageable.rig->channel->MarkLost(Status(StatusCode::kDeviceLost, "by the test"));
  std::thread closing([&] { other.rig->channel->Close(); });
  MR_EXPECT(pageable.rig->Logs("ends b0"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  MR_EXPECT(backend.controls.log.Find("closes b") == -1);
  backend.controls.blocking_calls.is_shut = false;
  closing.join();
  MR_EXPECT(backend.controls.log.Find("closes b") >= 0);
}

MR_TEST(a_channel_closes_after_what_its_blocking_calls_thread_has_to_do) {
  RecordingBackend backend;
  PageableRig pageable(backend);
  backend.controls.blocking_calls.is_shut = true;
  const Ticket copied = pageable.rig->Copy(pageable.a, pageable.Device(), pageable.Host(), 16);
  MR_EXPECT(pageable.IsInBlockingCall());
  std::thread closing([&] { pageable.rig->channel->Close(); });
  MR_EXPECT(Eventually([&] { return pageable.rig->Nop(pageable.a).refused == StatusCode::kState; }));
  backend.controls.blocking_calls.is_shut = false;
  closing.join();
  MR_EXPECT(pageable.rig->Completed(pageable.a) >= copied);
  MR_EXPECT(pageable.host[0] == std::byte{7});
}

MR_TEST(memory_for_other_processes_is_made_beside_the_channel) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  backend.controls.blocking_calls.is_shut = true;
  const Ticket made = rig.Alloc(a, Handle(0), 16, AllocKind::kInterprocess);
  const Ticket filled = rig.Fill(b, Handle(0), 16);
  MR_EXPECT(rig.Parks(a, ParkReason::kMemory) && rig.Parks(b, ParkReason::kPoint));
  const uint32_t c = rig.Stream();
  MR_EXPECT(rig.Completes(c, rig.Nop(c).ticket));
  MR_EXPECT(!rig.channel->MemoryAddress(Handle(0)));
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(rig.Completes(a, made) && rig.Completes(b, filled));
  MR_EXPECT(rig.channel->MemoryAddress(Handle(0)).value_or(0) != 0);
  MR_EXPECT(rig.Failures(a).empty() && rig.Failures(b).empty());
  MR_EXPECT(rig.Completes(a, rig.Free(a, Handle(0))));
  MR_EXPECT(Eventually([&] { return rig.channel->Stats().live_bytes == 0; }));
}

MR_TEST(memory_for_other_processes_waits_for_frees_too) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  backend.controls.free_bytes = 100;
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 80)) && rig.Completes(b, 1));
  backend.controls.completes_at_once = false;
  const Ticket freed = rig.Free(a, Handle(0));
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(a)->Issued() == freed; }));
  const Ticket second = rig.Alloc(b, Handle(1), 60, AllocKind::kInterprocess);
  MR_EXPECT(rig.Logs("allocates 60"));
  MR_EXPECT(rig.Parks(b, ParkReason::kMemory));
  backend.controls.completes_at_once = true;
  rig.Backend(0).Complete(freed);
  MR_EXPECT(rig.Completes(b, second));
  MR_EXPECT(rig.Failures(b).empty());
  const Ticket third = rig.Alloc(b, Handle(2), 60, AllocKind::kInterprocess);
  MR_EXPECT(rig.Completes(b, third));
  const auto failures = rig.Failures(b);
  MR_EXPECT(failures.size() == 1 && failures[0].status.code() == StatusCode::kOutOfMemory);
  MR_EXPECT(failures[0].requested_bytes == 60 && failures[0].free_bytes == 40);
}

MR_TEST(memory_that_came_back_while_the_blocking_calls_thread_was_refused_is_asked_for_again) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  backend.controls.free_bytes = 100;
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 80)) && rig.Completes(b, 1));
  backend.controls.completes_at_once = false;
  const Ticket freed = rig.Free(a, Handle(0));
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(a)->Issued() == freed; }));
  // The answer is given before the free completes, and processed after it.
  backend.controls.answer.is_shut = true;
  const Ticket made = rig.Alloc(b, Handle(1), 60, AllocKind::kInterprocess);
  MR_EXPECT(Eventually([&] { return backend.controls.answer.waiting.load() == 1; }));
  backend.controls.completes_at_once = true;
  rig.Backend(0).Complete(freed);
  backend.controls.answer.is_shut = false;
  MR_EXPECT(rig.Completes(b, made));
  MR_EXPECT(rig.Failures(b).empty());
}

MR_TEST(memory_that_the_blocking_calls_thread_made_goes_before_its_device) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, 1));
  backend.controls.blocking_calls.is_shut = true;
  rig.Alloc(a, Handle(0), 16, AllocKind::kInterprocess);
  MR_EXPECT(rig.Logs("allocates 16"));
  // The result is dropped: the device is destroyed before the allocation ends.
  rig.channel->Abandon(std::chrono::milliseconds(1));
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(rig.Logs("closes a"));
  rig.channel->Close();
  const int dropped = backend.controls.log.Find("drops 16");
  MR_EXPECT(dropped >= 0 && dropped < backend.controls.log.Find("closes a"));
}

MR_TEST(an_allocation_has_kept_memory_given_back_before_it_fails) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  backend.controls.free_bytes = 40;
  backend.controls.kept_bytes = 60;
  backend.controls.blocking_calls.is_shut = true;
  const Ticket made = rig.Alloc(a, Handle(0), 80);
  MR_EXPECT(rig.Logs("gives back") && rig.Parks(a, ParkReason::kMemory));
  // Beside the channel.
  MR_EXPECT(rig.Completes(b, rig.Nop(b).ticket));
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(rig.Completes(a, made) && rig.Failures(a).empty());
  // Memory was freed, but not enough: the allocation fails after one attempt.
  backend.controls.kept_bytes = 10;
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(1), 80)));
  const auto failures = rig.Failures(a);
  MR_EXPECT(failures.size() == 1 && failures[0].status.code() == StatusCode::kOutOfMemory);
  MR_EXPECT(failures[0].requested_bytes == 80 && failures[0].free_bytes == 30);
  const auto lines = backend.controls.log.Lines();
  MR_EXPECT_EQ(std::ranges::count(lines, "gives back"), 2);
  // Without kept memory, the blocking-calls thread is not asked.
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(2), 80)));
  MR_EXPECT_EQ(rig.Failures(a).size(), 2u);
  const auto after = backend.controls.log.Lines();
  MR_EXPECT_EQ(std::ranges::count(after, "gives back"), 2);
}

MR_TEST(many_streams_share_the_blocking_calls_thread_and_lose_nothing) {
  RecordingBackend backend;
  backend.controls.needs_locked_memory = true;
  Rig rig(backend);
  constexpr uint32_t kStreams = 4;
  constexpr uint32_t kRounds = 300;
  std::array<std::array<std::byte, 64>, kStreams> host{};
  std::vector<std::thread> threads;
  std::array<uint32_t, kStreams> streams{};
  for (uint32_t n = 0; n < kStreams; ++n) {
    streams[n] = rig.Stream();
    MR_EXPECT(rig.channel->RegisterHost(Handle(n), host[n], false).ok());
    rig.Alloc(streams[n], Handle(n), 64);
  }
  for (uint32_t n = 0; n < kStreams; ++n) {
    threads.emplace_back([&, n] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        rig.Copy(streams[n], {rig, Handle(n)}, {rig, Handle(n), MemorySpace::kHost}, 64);
        rig.Nop(streams[n]);
        rig.Copy(streams[n], {rig, Handle(n), MemorySpace::kHost}, {rig, Handle(n)}, 64);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint32_t stream : streams) {
    MR_EXPECT(Eventually([&] { return rig.Completed(stream) >= rig.channel->LastTicket(stream); }, 20000));
    MR_EXPECT(rig.Failures(stream).empty());
  }
}

}  // namespace
}  // namespace millrace::testing
