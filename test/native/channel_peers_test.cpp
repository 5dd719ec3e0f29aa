// Copies that name memory of other devices: their waits, their route, the poison of a failure across devices, and that
// no device frees the memory while they run.
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

using protocol::PeerRoute;

/// Two devices with a stream each, whose route has been probed in both directions.
struct Pair {
  explicit Pair(RecordingBackend& backend) : first(backend, 0), second(backend, 1) {
    a = first.Stream();
    b = second.Stream();
  }
  void Probe() {
    MR_EXPECT(first.channel->ProbePeer(second.channel->id()).ok());
    MR_EXPECT(second.channel->ProbePeer(first.channel->id()).ok());
  }
  Rig first;
  Rig second;
  uint32_t a = 0;
  uint32_t b = 0;
};

std::string Line(const char* stream, Ticket ticket, const char* what) {
  return std::string(stream) + " " + std::to_string(ticket) + " " + what;
}

MR_TEST(a_copy_between_devices_names_both_and_waits_for_memory_of_either) {
  RecordingBackend backend;
  Pair pair(backend);
  pair.Probe();
  pair.second.channel->Hold(true);
  pair.first.Alloc(pair.a, Handle(0), 16);
  pair.second.Alloc(pair.b, Handle(0), 16);
  const Ticket copied = pair.first.Copy(pair.a, {pair.first, Handle(0)}, {pair.second, Handle(0)}, 16);
  MR_EXPECT(pair.first.Parks(pair.a, ParkReason::kPoint));
  pair.second.channel->Hold(false);
  MR_EXPECT(pair.first.Completes(pair.a, copied));
  MR_EXPECT(pair.first.Failures(pair.a).empty());
  MR_EXPECT(backend.controls.log.Find(Line("a0", copied, "copy a from b")) >= 0);
  const Ticket back = pair.first.Copy(pair.a, {pair.second, Handle(0)}, {pair.first, Handle(0)}, 16);
  const Ticket within = pair.first.Copy(pair.a, {pair.second, Handle(0)}, {pair.second, Handle(0)}, 8);
  MR_EXPECT(pair.first.Completes(pair.a, within));
  MR_EXPECT(backend.controls.log.Find(Line("a0", back, "copy b from a")) >= 0);
  MR_EXPECT(backend.controls.log.Find(Line("a0", within, "copy b from b")) >= 0);
}

MR_TEST(a_stream_of_a_third_device_copies_between_two_others) {
  RecordingBackend backend;
  Pair pair(backend);
  Rig third(backend, 2);
  pair.Probe();
  const uint32_t c = third.Stream();
  pair.first.Alloc(pair.a, Handle(0), 16);
  pair.second.Alloc(pair.b, Handle(5), 16);
  const Ticket copied = third.Copy(c, {pair.second, Handle(5)}, {pair.first, Handle(0)}, 16);
  MR_EXPECT(third.Completes(c, copied));
  MR_EXPECT(third.Failures(c).empty());
  MR_EXPECT(backend.controls.log.Find(Line("c0", copied, "copy b from a")) >= 0);
}

MR_TEST(copies_of_a_pair_wait_until_its_route_was_tried_and_no_other_record_does) {
  RecordingBackend backend;
  Pair pair(backend);
  const uint32_t other = pair.first.Stream();
  pair.first.Alloc(pair.a, Handle(0), 16);
  pair.second.Alloc(pair.b, Handle(0), 16);
  const Ticket copied = pair.first.Copy(pair.a, {pair.first, Handle(0)}, {pair.second, Handle(0)}, 16);
  MR_EXPECT(pair.first.Parks(pair.a, ParkReason::kPeer));
  MR_EXPECT(std::string(ParkReasonName(ParkReason::kPeer)) == "peer");
  // The other direction is another route.
  MR_EXPECT(pair.second.channel->ProbePeer(pair.first.channel->id()).ok());
  backend.controls.route = PeerRoute::kStaged;
  backend.controls.probe.is_shut = true;
  std::thread probing([&] {
    auto probed = pair.first.channel->ProbePeer(pair.second.channel->id());
    MR_EXPECT(probed.ok() && probed.value() == PeerRoute::kStaged);
  });
  MR_EXPECT(Eventually([&] { return backend.controls.probe.waiting.load() == 1; }));
  // Both channels continue meanwhile, also with copies whose route is tested.
  MR_EXPECT(pair.first.Completes(other, pair.first.Nop(other).ticket));
  const Ticket known = pair.second.Copy(pair.b, {pair.second, Handle(0)}, {pair.first, Handle(0)}, 16);
  MR_EXPECT(pair.second.Completes(pair.b, known));
  MR_EXPECT(pair.first.Completed(pair.a) < copied);
  backend.controls.probe.is_shut = false;
  probing.join();
  MR_EXPECT(pair.first.Completes(pair.a, copied));
  MR_EXPECT(backend.controls.log.Find(Line("a0", copied, "copy a from b staged")) >= 0);
  MR_EXPECT(backend.controls.log.Find(Line("b0", known, "copy b from a")) >= 0);
}

MR_TEST(staging_memory_is_made_by_the_blocking_calls_thread_before_the_first_copy_that_needs_it) {
  RecordingBackend backend;
  Pair pair(backend);
  backend.controls.route = PeerRoute::kStaged;
  pair.Probe();
  const uint32_t other = pair.first.Stream();
  pair.first.Alloc(pair.a, Handle(0), 64);
  pair.second.Alloc(pair.b, Handle(0), 64);
  const auto copy = [&](uint64_t bytes) {
    return pair.first.Copy(pair.a, {pair.first, Handle(0)}, {pair.second, Handle(0)}, bytes);
  };
  backend.controls.blocking_calls.is_shut = true;
  const Ticket copied = copy(16);
  const Ticket after = pair.first.Nop(pair.a).ticket;
  MR_EXPECT(Eventually([&] { return backend.controls.blocking_calls.waiting.load() == 1; }));
  MR_EXPECT(pair.first.Parks(pair.a, ParkReason::kPeer));
  // The channel continues meanwhile, and a spurious wake changes nothing.
  pair.first.channel->WakeStream(pair.a);
  MR_EXPECT(pair.first.Completes(other, pair.first.Nop(other).ticket));
  MR_EXPECT(pair.first.Completed(pair.a) < copied);
  backend.controls.blocking_calls.is_shut = false;
  MR_EXPECT(pair.first.Completes(pair.a, after));
  CallLog& log = backend.controls.log;
  MR_EXPECT(log.Find("a0 stages 16") >= 0);
  MR_EXPECT(log.Find(Line("a0", copied, "copy a from b staged")) > log.Find("a0 stages 16"));
  // Existing staging memory is used; a copy that needs more allocates it.
  MR_EXPECT(pair.first.Completes(pair.a, copy(8)));
  MR_EXPECT(log.Find("a0 stages 8") == -1);
  backend.controls.refuse_blocking_calls = 1;
  const Ticket failed = copy(32);
  MR_EXPECT(pair.first.Completes(pair.a, failed));
  MR_EXPECT(log.Find("a0 stages 32") >= 0);
  MR_EXPECT(log.Find(Line("a0", failed, "copy a from b staged")) == -1);
  const auto failures = pair.first.Failures(pair.a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].first == failed && failures[0].status.code() == StatusCode::kOutOfMemory);
  // The next one tries again, and a whole overwrite clears what the failed one left.
  MR_EXPECT(pair.first.Completes(pair.a, copy(64)));
  MR_EXPECT(log.Find("a0 stages 64") >= 0);
  MR_EXPECT(pair.first.Completes(pair.a, pair.first.Copy(pair.a, Handle(0), Handle(0), 16)));
  MR_EXPECT(pair.first.Failures(pair.a).size() == 1);
}

MR_TEST(a_route_that_cannot_be_tried_leads_through_the_host) {
  RecordingBackend backend;
  RecordingBackend stranger;
  Pair pair(backend);
  Rig strange(stranger, 0);
  backend.controls.refuse_probe = true;
  pair.first.Alloc(pair.a, Handle(0), 16);
  pair.second.Alloc(pair.b, Handle(0), 16);
  MR_EXPECT(!pair.first.channel->ProbePeer(pair.second.channel->id()).ok());
  const Ticket copied = pair.first.Copy(pair.a, {pair.first, Handle(0)}, {pair.second, Handle(0)}, 16);
  MR_EXPECT(pair.first.Completes(pair.a, copied));
  MR_EXPECT(backend.controls.log.Find(Line("a0", copied, "copy a from b staged")) >= 0);
  MR_EXPECT(pair.first.channel->ProbePeer(strange.channel->id()).status().code() == StatusCode::kState);
  MR_EXPECT(pair.first.channel->ProbePeer(1u << 30).status().code() == StatusCode::kState);
  auto itself = pair.first.channel->ProbePeer(pair.first.channel->id());
  MR_EXPECT(itself.ok() && itself.value() == PeerRoute::kDirect);
}

MR_TEST(a_device_does_not_close_while_a_route_to_it_is_tried) {
  RecordingBackend backend;
  Pair pair(backend);
  backend.controls.probe.is_shut = true;
  std::thread probing([&] { MR_EXPECT(pair.first.channel->ProbePeer(pair.second.channel->id()).ok()); });
  MR_EXPECT(Eventually([&] { return backend.controls.probe.waiting.load() == 1; }));
  std::thread closing([&] { pair.second.channel->Close(); });
  MR_EXPECT(Eventually([&] { return pair.second.channel->LostStatus() != StatusCode::kOk; }));
  MR_EXPECT(backend.controls.log.Find("closes b") == -1);
  backend.controls.probe.is_shut = false;
  probing.join();
  closing.join();
  MR_EXPECT(backend.controls.log.Find("closes b") >= 0);
  MR_EXPECT(pair.first.channel->ProbePeer(pair.second.channel->id()).status().code() == StatusCode::kState);
}

MR_TEST(host_memory_of_another_device_is_waited_for_and_copied_plainly) {
  RecordingBackend backend;
  backend.controls.needs_locked_memory = true;
  Pair pair(backend);
  std::array<std::byte, 16> host{};
  pair.first.Alloc(pair.a, Handle(0), 16);
  const Rig::End memory{pair.first, Handle(0)};
  const Rig::End pinned{pair.second, Handle(9), MemorySpace::kHost};
  const Ticket copied = pair.first.Copy(pair.a, memory, pinned, 16);
  MR_EXPECT(pair.first.Parks(pair.a, ParkReason::kPin));
  MR_EXPECT(pair.second.channel->RegisterHost(Handle(9), host, true).ok());
  MR_EXPECT(pair.first.Completes(pair.a, copied));
  MR_EXPECT(backend.controls.log.Find(Line("a0", copied, "copy")) >= 0);
  MR_EXPECT(pair.first.Completes(pair.a, pair.first.Copy(pair.a, pinned, memory, 17)));
  MR_EXPECT(pair.first.Failures(pair.a).at(0).status.code() == StatusCode::kInternal);
}

MR_TEST(failures_poison_and_overwrites_clear_across_devices) {
  RecordingBackend backend;
  Pair pair(backend);
  pair.Probe();
  const Rig::End here{pair.first, Handle(0)};
  const Rig::End there{pair.second, Handle(0)};
  const Ticket made = pair.second.Alloc(pair.b, Handle(0), 16);
  MR_EXPECT(pair.second.Completes(pair.b, made));
  backend.controls.free_bytes = 8;
  const Ticket failed = pair.first.Alloc(pair.a, Handle(0), 16);
  const Ticket poisons = pair.first.Copy(pair.a, there, here, 16);
  MR_EXPECT(pair.first.Completes(pair.a, poisons));
  const auto first = pair.first.Failures(pair.a);
  MR_REQUIRE(first.size() == 2);
  MR_EXPECT(first[0].first == failed && first[1].status.code() == StatusCode::kUpstream);
  MR_EXPECT(first[1].cause == first[0].id);
  // The other device's own streams see it, and learn the first cause.
  backend.controls.free_bytes = UINT64_MAX;
  pair.second.Alloc(pair.b, Handle(1), 16);
  const Ticket read = pair.second.Copy(pair.b, Handle(1), Handle(0), 16);
  MR_EXPECT(pair.second.Completes(pair.b, read));
  MR_EXPECT(pair.second.Failures(pair.b).at(0).cause == first[0].id);
  MR_EXPECT(pair.second.Failures(pair.b).at(0).id != first[0].id &&
            pair.second.Failures(pair.b).at(0).id != first[1].id);
  pair.first.Alloc(pair.a, Handle(2), 16);
  const Ticket half = pair.first.Copy(pair.a, there, {pair.first, Handle(2)}, 8);
  MR_EXPECT(pair.first.Completes(pair.a, half));
  const Ticket still = pair.second.Copy(pair.b, Handle(1), Handle(0), 16);
  MR_EXPECT(pair.second.Completes(pair.b, still));
  MR_EXPECT(pair.second.Failures(pair.b).back().last == still);
  const Ticket clears = pair.first.Copy(pair.a, there, {pair.first, Handle(2)}, 16);
  MR_EXPECT(pair.first.Completes(pair.a, clears));
  const Ticket cleared = pair.second.Copy(pair.b, Handle(1), Handle(0), 16);
  MR_EXPECT(pair.second.Completes(pair.b, cleared));
  MR_EXPECT(pair.second.Failures(pair.b).back().last == still);
}

MR_TEST(a_copy_from_a_lost_or_closed_device_fails_alone) {
  RecordingBackend backend;
  Pair pair(backend);
  Rig third(backend, 2);
  const Rig::End here{pair.first, Handle(0)};
  pair.first.Alloc(pair.a, Handle(0), 16);
  // Parked for memory, a route and a pin of a device that is then lost.
  const uint32_t streams[] = {pair.first.Stream(), pair.first.Stream(), pair.first.Stream()};
  third.Alloc(third.Stream(), Handle(1), 16);
  const Ticket copies[] = {
      pair.first.Copy(streams[0], here, {third, Handle(0)}, 16),
      pair.first.Copy(streams[1], {third, Handle(1)}, here, 16),
      pair.first.Copy(streams[2], here, {third, Handle(0), MemorySpace::kHost}, 16),
  };
  MR_EXPECT(pair.first.Parks(streams[0], ParkReason::kPoint));
  MR_EXPECT(pair.first.Parks(streams[1], ParkReason::kPeer));
  MR_EXPECT(pair.first.Parks(streams[2], ParkReason::kPin));
  third.channel->MarkLost(Status(StatusCode::kDeviceLost, "lost by the test"));
  for (int n = 0; n < 3; ++n) {
    MR_EXPECT(pair.first.Completes(streams[n], copies[n]));
    MR_EXPECT(pair.first.Failures(streams[n]).at(0).status.code() == StatusCode::kDeviceLost);
    // The stream itself continues.
    MR_EXPECT(pair.first.Completes(streams[n], pair.first.Nop(streams[n]).ticket));
    MR_EXPECT(pair.first.Failures(streams[n]).size() == 1);
  }
  // Its destination is poisoned.
  const Ticket read = pair.first.Copy(pair.a, Handle(0), Handle(0), 16);
  MR_EXPECT(pair.first.Completes(pair.a, read));
  MR_EXPECT(pair.first.Failures(pair.a).at(0).status.code() == StatusCode::kUpstream);
  pair.first.Fill(pair.a, Handle(0), 16);
  pair.second.channel->Close();
  const Ticket closed = pair.first.Copy(pair.a, here, {pair.second, Handle(0)}, 16);
  MR_EXPECT(pair.first.Completes(pair.a, closed));
  MR_EXPECT(pair.first.Failures(pair.a).at(1).status.code() == StatusCode::kDeviceLost);
  MR_EXPECT(pair.first.Failures(pair.a).at(1).first == closed);
}

MR_TEST(ends_on_devices_of_two_backends_are_no_copy) {
  RecordingBackend backend;
  RecordingBackend stranger;
  Rig rig(backend, 0);
  Rig strange(stranger, 0);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 16);
  strange.Alloc(strange.Stream(), Handle(0), 16);
  const Ticket copied = rig.Copy(a, {rig, Handle(0)}, {strange, Handle(0)}, 16);
  MR_EXPECT(rig.Completes(a, copied));
  MR_EXPECT(rig.Failures(a).at(0).status.code() == StatusCode::kInternal);
}

MR_TEST(host_memory_of_a_device_of_another_backend_is_copied) {
  RecordingBackend backend;
  RecordingBackend stranger;
  Rig rig(backend, 0);
  Rig strange(stranger, 0);
  std::array<std::byte, 16> host{};
  MR_EXPECT(strange.channel->RegisterHost(Handle(0), host, true).ok());
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 16);
  const Ticket copied = rig.Copy(a, {rig, Handle(0)}, {strange, Handle(0), MemorySpace::kHost}, 16);
  MR_EXPECT(rig.Completes(a, copied));
  MR_EXPECT(rig.Failures(a).empty());
}

MR_TEST(a_device_keeps_its_memory_until_copies_of_others_ended) {
  RecordingBackend backend;
  Pair pair(backend);
  pair.Probe();
  std::array<std::byte, 16> host{};
  MR_EXPECT(pair.second.channel->RegisterHost(Handle(0), host, true).ok());
  pair.first.Alloc(pair.a, Handle(0), 16);
  pair.second.Alloc(pair.b, Handle(0), 16);
  MR_EXPECT(pair.first.Completes(pair.a, 2) && pair.second.Completes(pair.b, 2));
  backend.controls.completes_at_once = false;
  const Ticket copied = pair.first.Copy(pair.a, {pair.first, Handle(0)}, {pair.second, Handle(0)}, 16);
  MR_EXPECT(pair.first.Logs(Line("a0", copied, "copy a from b")));
  std::thread closing([&] { pair.second.channel->Close(); });
  // Its streams end right before it looks for peer users of its memory.
  MR_EXPECT(pair.second.Logs("ends b0"));
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  backend.controls.log.Add("the copy ends");
  pair.first.Backend(0).Complete(copied);
  closing.join();
  MR_EXPECT(backend.controls.log.Find("the copy ends") < backend.controls.log.Find("closes b"));
  MR_EXPECT(pair.first.Failures(pair.a).empty());
}

MR_TEST(devices_that_are_given_up_together_do_not_wait_for_each_other) {
  RecordingBackend backend;
  auto pair = std::make_unique<Pair>(backend);
  pair->Probe();
  pair->first.Alloc(pair->a, Handle(0), 16);
  pair->second.Alloc(pair->b, Handle(0), 16);
  MR_EXPECT(pair->first.Completes(pair->a, 2) && pair->second.Completes(pair->b, 2));
  backend.controls.completes_at_once = false;
  const Ticket here = pair->first.Copy(pair->a, {pair->first, Handle(0)}, {pair->second, Handle(0)}, 16);
  const Ticket there = pair->second.Copy(pair->b, {pair->second, Handle(0)}, {pair->first, Handle(0)}, 16);
  MR_EXPECT(pair->first.Logs(Line("a0", here, "copy a from b")) &&
            pair->second.Logs(Line("b0", there, "copy b from a")));
  pair->first.channel->Abandon(std::chrono::milliseconds(0));
  pair->second.channel->Abandon(std::chrono::milliseconds(0));
  const std::weak_ptr<Channel> watched[] = {pair->first.channel, pair->second.channel};
  pair->first.Backend(0).Complete(here);
  pair->second.Backend(0).Complete(there);
  pair.reset();
  for (const auto& channel : watched) MR_EXPECT(Eventually([&] { return channel.expired(); }));
}

MR_TEST(devices_that_copy_from_each_other_from_many_threads_lose_nothing) {
  RecordingBackend backend;
  std::array<std::unique_ptr<Rig>, 3> rigs;
  for (uint32_t n = 0; n < 3; ++n) rigs[n] = std::make_unique<Rig>(backend, n);
  constexpr uint32_t kRounds = 400;
  std::array<uint32_t, 3> makers{};
  std::array<uint32_t, 3> copiers{};
  for (int n = 0; n < 3; ++n) {
    makers[n] = rigs[n]->Stream();
    copiers[n] = rigs[n]->Stream();
  }
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n) {
    threads.emplace_back([&, n] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        rigs[n]->Alloc(makers[n], Handle(round), 16);
        if (round == kRounds / 2) {
          for (int from = 0; from < 3; ++from) MR_EXPECT(rigs[n]->channel->ProbePeer(rigs[from]->channel->id()).ok());
        }
      }
    });
    threads.emplace_back([&, n] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        const Rig& dst = *rigs[(n + round) % 3];
        const Rig& src = *rigs[(n + round / 3) % 3];
        rigs[n]->Copy(copiers[n], {dst, Handle(round)}, {src, Handle(round)}, 16);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int n = 0; n < 3; ++n) {
    MR_EXPECT(rigs[n]->Completes(copiers[n], rigs[n]->channel->LastTicket(copiers[n])));
    MR_EXPECT(rigs[n]->Failures(copiers[n]).empty());
  }
}

}  // namespace
}  // namespace millrace::testing
