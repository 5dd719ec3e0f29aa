// Records that wait for their owner, in either order of arrival, and wrapped streams.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "channel_rig.h"
#include "hal/spin.h"

namespace millrace::testing {
namespace {

MR_TEST(a_hold_parks_its_stream_alone_until_it_is_let_go) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  const Ticket held = rig.Hold(a);
  const Ticket after = rig.Nop(a).ticket;
  MR_EXPECT(rig.Parks(a, ParkReason::kHold));
  MR_EXPECT(std::string(ParkReasonName(ParkReason::kHold)) == "host");
  MR_EXPECT(rig.Completes(b, rig.Nop(b).ticket));
  MR_EXPECT(rig.Completed(a) < held);
  rig.channel->ReleaseHold(a, held);
  MR_EXPECT(rig.Completes(a, after));
  MR_EXPECT(rig.Failures(a).empty());
}

MR_TEST(a_hold_that_was_let_go_before_it_was_issued_holds_nobody) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.channel->Hold(true);
  const Ticket first = rig.Hold(a);
  const Ticket second = rig.Hold(a);
  const Ticket third = rig.Hold(a);
  rig.channel->ReleaseHold(a, second);
  rig.channel->ReleaseHold(a, first);
  rig.channel->Hold(false);
  MR_EXPECT(rig.Completes(a, second));
  MR_EXPECT(rig.Parks(a, ParkReason::kHold));
  MR_EXPECT(rig.Completed(a) == second);
  rig.channel->ReleaseHold(a, third);
  MR_EXPECT(rig.Completes(a, third));
}

/// Number of times that the channels' threads went to sleep.
uint64_t Sleeps() {
  uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "mr-channel") continue;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      if (uint64_t count = 0; word == "voluntary_ctxt_switches:" && status >> count) sum += count;
    }
  }
  return sum;
}

struct Owner final : WakeTarget {
  void Ring() noexcept override { rings.fetch_add(1); }
  std::atomic<int> rings{0};
};

MR_TEST(nobody_looks_after_a_held_stream_until_it_is_let_go) {
  RecordingBackend backend;
  backend.controls.is_polled = true;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  const auto owner = std::make_shared<Owner>();
  rig.channel->FindStream(a)->SetOwner(owner);
  const Ticket held = rig.Hold(a);
  const Ticket after = rig.Nop(a).ticket;
  MR_EXPECT(rig.Parks(a, ParkReason::kHold));
  MR_EXPECT(rig.channel->Arm(a, after));
  // Another stream has work meanwhile, which the channel's thread looks after.
  MR_EXPECT(rig.channel->Arm(b, rig.Nop(b).ticket) || rig.Completes(b, 2));
  MR_EXPECT(rig.Completes(b, 2));
  // After work it naps for 5 ms. If it looked after the held stream, it would sleep once per millisecond all the time.
  constexpr auto kWindow = std::chrono::milliseconds(100);
  MR_EXPECT(Eventually([&] {
    const uint64_t before = Sleeps();
    std::this_thread::sleep_for(kWindow);
    return Sleeps() - before < 10;
  }));
  MR_EXPECT(owner->rings.load() == 0);
  rig.channel->ReleaseHold(a, held);
  MR_EXPECT(rig.Completes(a, after));
  MR_EXPECT(Eventually([&] { return owner->rings.load() == 1; }));
}

// Each nap would take the core of a kernel: with naps there are some 70 in each round.
MR_TEST(with_few_cores_the_thread_of_a_device_that_notifies_does_not_nap) {
  if (MaySpin()) return;
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, rig.Nop(a).ticket));
  const uint64_t before = Sleeps();
  constexpr int kRounds = 20;
  for (int n = 0; n < kRounds; ++n) {
    MR_EXPECT(rig.Completes(a, rig.Nop(a).ticket));
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  MR_EXPECT(Sleeps() - before < kRounds * 10);
}

MR_TEST(letting_go_of_a_later_hold_leaves_the_earlier_one) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const Ticket first = rig.Hold(a);
  const Ticket second = rig.Hold(a);
  MR_EXPECT(rig.Parks(a, ParkReason::kHold));
  rig.channel->ReleaseHold(a, second);
  rig.channel->ReleaseHold(a, second + 100);  // Not submitted yet: has no effect.
  rig.channel->ReleaseHold(77, 1);            // No such stream.
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, rig.Nop(b).ticket));
  MR_EXPECT(rig.Completed(a) < first);
  rig.channel->ReleaseHold(a, first);
  MR_EXPECT(rig.Completes(a, second));
}

MR_TEST(a_hold_behind_a_lost_device_fails_and_one_in_an_abandoned_channel_is_not_waited_for) {
  RecordingBackend backend;
  Rig first(backend, 0);
  auto second = std::make_unique<Rig>(backend, 1);
  const uint32_t a = first.Stream();
  const uint32_t b = second->Stream();
  first.channel->Hold(true);
  second->Wait(b, first, a, first.Nop(a).ticket);
  const Ticket held = second->Hold(b);
  first.channel->MarkLost(Status(StatusCode::kDeviceLost, "lost by the test"));
  MR_EXPECT(second->Completes(b, held));
  MR_EXPECT(second->Failures(b).size() == 2 && second->Failures(b)[1].first == held);
  const uint32_t c = second->Stream();
  second->Hold(c);
  MR_EXPECT(second->Parks(c, ParkReason::kHold));
  second->channel->Abandon(std::chrono::milliseconds(5000));
  second.reset();  // Joins: does not return before the thread ended.
  first.channel->Hold(false);
}

MR_TEST(a_device_that_closes_drains_its_holds) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const Ticket held = rig.Hold(a);
  const Ticket last = rig.Nop(a).ticket;
  MR_EXPECT(rig.Parks(a, ParkReason::kHold));
  std::thread closing([&] { rig.channel->Close(); });
  MR_EXPECT(Eventually([&] { return rig.Nop(a).refused == StatusCode::kState; }));
  rig.channel->ReleaseHold(a, held);
  closing.join();
  MR_EXPECT(rig.Completed(a) >= last);
}

MR_TEST(holds_let_go_from_another_thread_lose_no_wake) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  std::atomic<Ticket> submitted{0};
  constexpr int kRounds = 3000;
  std::thread owner([&] {
    Ticket released = 1;
    while (released < kRounds + 1) {
      const Ticket last = submitted.load();
      while (released < last) rig.channel->ReleaseHold(a, ++released);
      std::this_thread::yield();
    }
  });
  for (int n = 0; n < kRounds; ++n) submitted = rig.Hold(a);
  MR_EXPECT(Eventually([&] { return rig.Completed(a) == kRounds + 1; }, 60000));
  owner.join();
}

MR_TEST(a_foreign_stream_reaches_the_backend_and_handles_are_known_while_a_stream_lives) {
  RecordingBackend backend;
  Rig rig(backend);
  const auto a = static_cast<uint32_t>(rig.channel->ReserveStream(nullptr));
  MR_EXPECT(!rig.channel->StreamHandle(a));
  const Ticket created = rig.Submit(a, protocol::StreamCreateRecord{.is_foreign = 1, .foreign = 0});
  MR_EXPECT(rig.Completes(a, created));
  MR_EXPECT(Eventually([&] { return rig.channel->StreamHandle(a) == std::optional<uint64_t>(0); }));
  const uint32_t b = rig.Stream();
  MR_EXPECT(Eventually([&] { return rig.channel->StreamHandle(b).value_or(0) != 0; }));
  const Ticket destroyed = rig.Submit(b, protocol::StreamDestroyRecord{});
  MR_EXPECT(rig.Completes(b, destroyed));
  MR_EXPECT(!rig.channel->StreamHandle(b));
  MR_EXPECT(!rig.channel->StreamHandle(4000));
}

// No word tells it, so somebody must ask, also while the thread only waits for a word.
MR_TEST(a_fault_is_found_whatever_the_thread_does_after_its_work) {
  using enum protocol::Schedule;
  for (const protocol::Schedule schedule : {kAuto, kSpin, kYield, kBlocking}) {
    RecordingBackend backend;
    backend.controls.is_polled = true;
    Rig rig(backend, 0, 1 << 20, schedule);
    const uint32_t a = rig.Stream();
    MR_EXPECT(rig.Completes(a, rig.Nop(a).ticket));
    backend.controls.has_faulted = true;
    MR_EXPECT(rig.channel->Arm(a, rig.channel->LastTicket(a) + 1));
    rig.Nop(a);
    MR_EXPECT(Eventually([&] { return rig.channel->LostStatus() == StatusCode::kDeviceLost; }));
  }
}

}  // namespace
}  // namespace millrace::testing
