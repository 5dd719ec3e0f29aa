// The runtime on a recording backend: when records are issued, why a stream parks and resumes, what a failure poisons,
// and that order and wakes are correct with many threads.
#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

MR_TEST(a_wait_that_overtakes_the_record_it_names_parks_its_stream) {
  RecordingBackend backend;
  Rig first(backend, 0);
  Rig second(backend, 1);
  const uint32_t a = first.Stream();
  const uint32_t b = second.Stream();
  MR_EXPECT(first.Completes(a, 1) && second.Completes(b, 1));
  first.channel->Hold(true);
  const Ticket recorded = first.Nop(a).ticket;
  const Ticket waited = second.Wait(b, first, a, recorded);
  MR_EXPECT(second.Parks(b, ParkReason::kPoint));
  MR_EXPECT(backend.controls.log.Find("b0 2 wait a0 2") == -1);
  backend.controls.completes_at_once = false;
  first.channel->Hold(false);
  MR_EXPECT(Eventually([&] { return backend.controls.log.Find("b0 2 wait a0 2") >= 0; }));
  MR_EXPECT(backend.controls.log.Find("a0 2 nop") < backend.controls.log.Find("b0 2 wait a0 2"));
  backend.devices[0]->streams[0]->Complete(recorded);
  backend.devices[1]->streams[0]->Complete(waited);
  MR_EXPECT(second.Completes(b, waited));
}

MR_TEST(a_parked_stream_stops_no_other_and_keeps_its_order) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  rig.Alloc(a, Handle(0), 16);
  const Ticket launched = rig.Launch(a, Handle(0), Handle(0), protocol::Access::kReadWrite);
  const Ticket last = rig.Fill(a, Handle(0), 16);
  const Ticket other = rig.Nop(b).ticket;
  MR_EXPECT(rig.Parks(a, ParkReason::kBuild));
  MR_EXPECT(rig.Completes(b, other));
  MR_EXPECT(rig.Completed(a) < launched);
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  MR_EXPECT(rig.Completes(a, last));
  MR_EXPECT(backend.controls.log.Find("a0 3 launch") < backend.controls.log.Find("a0 4 fill"));
}

MR_TEST(a_copy_parks_until_its_host_memory_is_registered) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  std::array<std::byte, 16> host{};
  rig.Alloc(a, Handle(0), 16);
  const Ticket copied = rig.Copy(a, Handle(0), Handle(0), 16, MemorySpace::kHost);
  MR_EXPECT(rig.Parks(a, ParkReason::kPin));
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, true).ok());
  MR_EXPECT(rig.Completes(a, copied));
  MR_EXPECT(rig.channel->UnregisterHost(Handle(0)).ok());
}

MR_TEST(a_flooded_stream_parks_at_its_window) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, 1) && rig.Completes(a, 1));
  backend.controls.completes_at_once = false;
  Ticket last = 0;
  for (uint32_t n = 0; n < protocol::kStreamWindow + 100; ++n) last = rig.Nop(a).ticket;
  MR_EXPECT(rig.Parks(a, ParkReason::kWindow));
  MR_EXPECT(rig.channel->FindStream(a)->Issued() == protocol::kStreamWindow + 1);
  rig.Backend(0).Complete(protocol::kStreamWindow);
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(a)->Issued() == last; }));
  rig.Backend(0).Complete(last);
}

MR_TEST(memory_of_a_parked_stream_is_waited_for_and_a_stale_handle_is_not) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  rig.Alloc(a, Handle(1), 8);
  rig.Launch(a, Handle(7), Handle(1), protocol::Access::kWrite);  // Never built so far: parks a.
  rig.Alloc(a, Handle(0), 8);
  const Ticket filled = rig.Fill(b, Handle(0), 8);
  MR_EXPECT(rig.Parks(b, ParkReason::kPoint));
  MR_EXPECT(rig.channel->InstallKernel(Handle(7), {}).ok());
  MR_EXPECT(rig.Completes(b, filled));
  MR_EXPECT(rig.Failures(b).empty());
  rig.Free(b, Handle(0));
  const Ticket stale = rig.Fill(b, Handle(0), 8);
  MR_EXPECT(rig.Completes(b, stale));
  MR_EXPECT(rig.Failures(b).at(0).status.code() == StatusCode::kInternal);
}

MR_TEST(a_failure_poisons_what_it_would_have_written_and_an_overwrite_clears) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  rig.Alloc(a, Handle(0), 16);
  const Ticket allocated = rig.Alloc(a, Handle(1), 16);
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  MR_EXPECT(rig.Completes(a, allocated));
  backend.controls.refuse_launches = 1;
  const Ticket failed = rig.Launch(a, Handle(0), Handle(0), protocol::Access::kWrite);
  MR_EXPECT(rig.Completes(a, failed));
  const Ticket read = rig.Copy(b, Handle(1), Handle(0), 16);
  const Ticket chained = rig.Copy(b, Handle(0), Handle(1), 16);
  MR_EXPECT(rig.Completes(b, chained));
  const auto first = rig.Failures(a);
  const auto second = rig.Failures(b);
  MR_EXPECT(first.size() == 1 && first[0].first == failed && first[0].status.code() == StatusCode::kLaunchFailed &&
            first[0].status.driver_code() == 7);
  MR_EXPECT(second.size() == 1 && second[0].first == read && second[0].last == chained);
  MR_EXPECT(second[0].status.code() == StatusCode::kUpstream && second[0].cause == first[0].id);
  rig.Fill(b, Handle(0), 8);  // A partial fill clears nothing.
  const Ticket still = rig.Copy(b, Handle(1), Handle(0), 16);
  MR_EXPECT(rig.Completes(b, still));
  MR_EXPECT(rig.Failures(b).back().last == still);
  rig.Fill(b, Handle(0), 16);
  const Ticket cleared = rig.Copy(b, Handle(1), Handle(0), 16);
  MR_EXPECT(rig.Completes(b, cleared));
  MR_EXPECT(rig.Failures(b).back().last == still);
}

MR_TEST(a_launch_beyond_its_kernels_limits_fails_with_both_numbers) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  backend.controls.kernel_limits = {.max_threads_per_block = 640, .max_dynamic_shared_bytes = 1000};
  rig.Alloc(a, Handle(0), 16);
  constexpr auto kWrites = protocol::Access::kWrite;
  rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 641});
  rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 1024});
  rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 640, .shared_bytes = 1001});
  const Ticket allowed = rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 640, .shared_bytes = 1000});
  auto installed = rig.channel->InstallKernel(Handle(0), {});
  MR_EXPECT(installed.ok() && installed.value().max_threads_per_block == 640);
  MR_EXPECT(installed.ok() && installed.value().max_dynamic_shared_bytes == 1000);
  MR_EXPECT(rig.Completes(a, allowed));
  const auto failures = rig.Failures(a);
  MR_REQUIRE(failures.size() == 3);
  for (const Failure& failure : failures) MR_EXPECT(failure.status.code() == StatusCode::kLaunchFailed);
  MR_EXPECT(failures[0].requested == 641 && failures[0].limit == 640);
  MR_EXPECT(failures[1].requested == 1024 && failures[1].limit == 640);
  MR_EXPECT(failures[2].requested == 1001 && failures[2].limit == 1000);
  MR_EXPECT(backend.controls.log.Find("a0 6 launch") >= 0 && backend.controls.log.Find("a0 5 launch") < 0);
}

MR_TEST(a_cooperative_launch_fails_where_its_blocks_cannot_run_at_once) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  // The backend reports 20 blocks of one warp, 10 of more, half as many with shared memory.
  backend.controls.kernel_limits.max_cooperative_blocks = 10;
  rig.Alloc(a, Handle(0), 16);
  constexpr auto kWrites = protocol::Access::kWrite;
  rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 32, .together = 21});
  rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 33, .together = 11});
  rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 32, .shared_bytes = 8, .together = 12});
  const Ticket allowed = rig.Launch(a, Handle(0), Handle(0), kWrites, {.threads = 32, .together = 20});
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  MR_EXPECT(rig.Completes(a, allowed));
  const auto failures = rig.Failures(a);
  MR_REQUIRE(failures.size() == 3);
  for (const Failure& failure : failures) MR_EXPECT(failure.status.code() == StatusCode::kLaunchFailed);
  MR_EXPECT(failures[0].requested == 21 && failures[0].limit == 20);
  MR_EXPECT(failures[1].requested == 11 && failures[1].limit == 10);
  MR_EXPECT(failures[2].requested == 12 && failures[2].limit == 10);
  MR_EXPECT(backend.controls.log.Find("a0 6 cooperative launch") >= 0);
}

MR_TEST(a_device_without_cooperative_launches_says_so) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 16);
  const Ticket refused = rig.Launch(a, Handle(0), Handle(0), protocol::Access::kWrite, {.threads = 1, .together = 1});
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  MR_EXPECT(rig.Completes(a, refused));
  const auto failures = rig.Failures(a);
  MR_EXPECT(failures.size() == 1 && failures[0].status.code() == StatusCode::kUnsupported);
}

MR_TEST(out_of_memory_waits_for_pending_frees_and_then_fails) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  backend.controls.free_bytes = 100;
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 80)) && rig.Completes(b, 1));
  backend.controls.completes_at_once = false;
  const Ticket freed = rig.Free(a, Handle(0));
  const Ticket second = rig.Alloc(b, Handle(1), 60);
  MR_EXPECT(rig.Parks(b, ParkReason::kMemory));
  backend.controls.completes_at_once = true;
  rig.Backend(0).Complete(freed);
  MR_EXPECT(rig.Completes(b, second));
  MR_EXPECT(rig.Failures(b).empty());
  const Ticket third = rig.Alloc(b, Handle(2), 60);
  MR_EXPECT(rig.Completes(b, third));
  const auto failures = rig.Failures(b);
  MR_EXPECT(failures.size() == 1 && failures[0].status.code() == StatusCode::kOutOfMemory);
  MR_EXPECT(failures[0].requested_bytes == 60 && failures[0].free_bytes == 40);
}

MR_TEST(the_limit_refuses_without_claiming_and_a_slot_is_reused_after_its_last_ticket) {
  RecordingBackend backend;
  Rig rig(backend, 0, 10);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, 1));
  // A record completes before it counts as issued.
  MR_EXPECT(Eventually([&] { return rig.channel->Stats().pending_records == 0; }));
  rig.channel->Hold(true);
  for (int n = 0; n < 10; ++n) MR_EXPECT(rig.Nop(a).refused == StatusCode::kOk);
  MR_EXPECT(rig.Nop(a).refused == StatusCode::kLimit);
  MR_EXPECT(rig.channel->LastTicket(a) == 11);
  rig.channel->Hold(false);
  MR_EXPECT(rig.Completes(a, 11));
  protocol::StreamDestroyRecord destroy{};
  rig.Head(destroy, a);
  const Ticket destroyed = rig.channel->Submit(Bytes(destroy)).ticket;
  MR_EXPECT(rig.Completes(a, destroyed));
  MR_EXPECT(Eventually([&] { return rig.Nop(a).refused == StatusCode::kInternal; }));  // Nobody's slot.
}

MR_TEST(malformed_records_are_refused_or_fail_and_touch_nothing) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  uint32_t seed = 12345;
  // The low bits of such a sequence hardly change.
  const auto random = [&] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
  std::vector<std::byte> record(512);
  for (int n = 0; n < 20000; ++n) {
    for (std::byte& byte : record) byte = static_cast<std::byte>(random() >> 16);
    const protocol::RecordHeader header{static_cast<uint16_t>(random() % 18), 0, (16 + random() % 30 * 8), a, 0};
    std::memcpy(record.data(), &header, sizeof(header));
    // It may park forever, because a random handle may be bound later.
    const auto opcode = static_cast<Opcode>(header.opcode);
    if (opcode == Opcode::kLaunch || opcode == Opcode::kCopy || opcode == Opcode::kCopyStrided ||
        opcode == Opcode::kAdopt || opcode == Opcode::kHold || opcode == Opcode::kStreamDestroy) {
      continue;
    }
    const uint32_t no_handle = 5;  // Generation 0.
    std::memcpy(record.data() + sizeof(header), &no_handle, sizeof(no_handle));
    if (opcode == Opcode::kAlloc) continue;
    static_cast<void>(rig.channel->Submit(std::span(record).first(header.size)));
  }
  MR_EXPECT(rig.channel->Submit(std::span(record).first(7)).refused == StatusCode::kInternal);
  const Ticket last = rig.Nop(a).ticket;
  MR_EXPECT(rig.Completes(a, last));
}

MR_TEST(memory_is_looked_for_again_whichever_free_ends_first) {
  RecordingBackend backend;
  Rig rig(backend);
  backend.controls.free_bytes = 16;
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  const uint32_t c = rig.Stream();
  rig.Alloc(a, Handle(0), 4);
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(1), 4)) && rig.Completes(b, rig.Alloc(b, Handle(2), 8)));
  MR_EXPECT(rig.Completes(c, 1));
  backend.controls.completes_at_once = false;
  const Ticket oldest = rig.Free(a, Handle(0));
  const Ticket next = rig.Free(a, Handle(1));
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(a)->Issued() == next; }));
  const Ticket other = rig.Free(b, Handle(2));
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(b)->Issued() == other; }));
  const Ticket allocated = rig.Alloc(c, Handle(3), 8);
  MR_EXPECT(rig.Parks(c, ParkReason::kMemory));
  // It frees enough, although an older free has not completed.
  rig.Backend(1).Complete(other);
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(c)->Issued() == allocated; }));
  rig.Backend(2).Complete(allocated);
  // Here the first does not free enough, and the next one on the same stream does.
  const Ticket late = rig.Alloc(c, Handle(4), 8);
  MR_EXPECT(rig.Parks(c, ParkReason::kMemory));
  rig.Backend(0).Complete(oldest);
  MR_EXPECT(rig.Parks(c, ParkReason::kMemory));
  rig.Backend(0).Complete(next);
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(c)->Issued() == late; }));
  rig.Backend(2).Complete(late);
  MR_EXPECT(rig.Failures(c).empty());
}

MR_TEST(a_stream_that_is_woken_for_nothing_waits_once) {
  RecordingBackend backend;
  Rig first(backend, 0);
  Rig second(backend, 1);
  const uint32_t a = first.Stream();
  const uint32_t b = second.Stream();
  const uint32_t c = second.Stream();
  MR_EXPECT(first.Completes(a, 1) && second.Completes(b, 1) && second.Completes(c, 1));
  first.channel->Hold(true);
  const Ticket recorded = first.Nop(a).ticket;
  const Ticket waited = second.Wait(b, first, a, recorded);
  MR_EXPECT(second.Parks(b, ParkReason::kPoint));
  for (int n = 0; n < 10; ++n) {
    second.channel->WakeStream(b);
    // One turn of the channel after the wake.
    MR_EXPECT(second.Completes(c, second.Nop(c).ticket));
  }
  MR_EXPECT_EQ(first.channel->FindStream(a)->WaiterCount(), 1u);
  first.channel->Hold(false);
  MR_EXPECT(second.Completes(b, waited));
  // Like streams that wait for a handle or for a route.
  struct Waker final : StreamWaker {
    void WakeStream(uint32_t stream) noexcept override { woken.push_back(stream); }
    std::vector<uint32_t> woken;
  };
  const auto waker = std::make_shared<Waker>();
  WaitingStreams waiting;
  for (int n = 0; n < 3; ++n) {
    waiting.Add(waker, 7);
    waiting.Add(waker, 8);
  }
  waiting.Wake();
  MR_EXPECT(waker->woken == (std::vector<uint32_t>{7, 8}));
}

MR_TEST(an_abandoned_channel_ends_although_streams_were_parked_with_work) {
  RecordingBackend backend;
  auto rig = std::make_unique<Rig>(backend);
  const uint32_t a = rig->Stream();
  MR_EXPECT(rig->Completes(a, 1));
  backend.controls.completes_at_once = false;
  for (uint32_t n = 0; n < 3 * protocol::kStreamWindow; ++n) rig->Nop(a);
  MR_EXPECT(rig->Parks(a, ParkReason::kWindow));
  const std::weak_ptr<Channel> watched = rig->channel;
  rig->channel->Abandon(std::chrono::milliseconds(0));
  rig->Backend(0).Complete(protocol::kStreamWindow + 1);  // The device ends what it had accepted, and no more.
  rig.reset();                                            // Waits for the thread.
  MR_EXPECT(Eventually([&] { return watched.expired(); }));
}

MR_TEST(letting_go_of_host_memory_after_the_end_returns) {
  RecordingBackend backend;
  Rig rig(backend);
  std::array<std::byte, 16> host{};
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, true).ok());
  rig.channel->Close();
  MR_EXPECT(rig.channel->UnregisterHost(Handle(0)).ok());
}

MR_TEST(a_polled_device_closes_although_its_word_comes_while_nobody_looks) {
  RecordingBackend backend;
  backend.controls.is_polled = true;
  std::vector<std::unique_ptr<Rig>> rigs;  // Kept, because a late word may still be written to their timelines.
  for (int round = 0; round < 400; ++round) {
    Rig& rig = *rigs.emplace_back(std::make_unique<Rig>(backend, 0));
    const uint32_t a = rig.Stream();
    rig.channel->Close();
    MR_EXPECT(rig.Completed(a) == rig.channel->LastTicket(a));
  }
}

MR_TEST(two_devices_that_wait_for_each_other_from_four_threads_lose_nothing) {
  RecordingBackend backend;
  Rig first(backend, 0);
  Rig second(backend, 1);
  constexpr int kRounds = 3000;
  const std::array<Rig*, 2> rigs{&first, &second};
  std::array<std::array<uint32_t, 2>, 2> streams{};
  for (int d = 0; d < 2; ++d) {
    for (int s = 0; s < 2; ++s) streams[d][s] = rigs[d]->Stream();
  }
  std::array<std::array<std::atomic<Ticket>, 2>, 2> points{};
  std::vector<std::thread> threads;
  for (int d = 0; d < 2; ++d) {
    for (int s = 0; s < 2; ++s) {
      threads.emplace_back([&, d, s] {
        for (int n = 0; n < kRounds; ++n) {
          points[d][s] = rigs[d]->Nop(streams[d][s]).ticket;
          const int od = (n & 1) != 0 ? d : 1 - d;
          const Ticket point = points[od][1 - s].load();
          if (point != 0) rigs[d]->Wait(streams[d][s], *rigs[od], streams[od][1 - s], point);
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (int d = 0; d < 2; ++d) {
    for (int s = 0; s < 2; ++s)
      MR_EXPECT(rigs[d]->Completes(streams[d][s], rigs[d]->channel->LastTicket(streams[d][s])));
  }
}

}  // namespace
}  // namespace millrace::testing
