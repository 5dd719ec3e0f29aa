// Events: which can be compared, which can be recorded again, and how long each is kept.
#include <string>
#include <thread>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

using protocol::EventKind;

Ticket FreeEvent(Rig& rig, uint32_t stream, uint32_t handle) {
  return rig.Submit(stream, protocol::FreeEventRecord{.handle = handle});
}
Ticket WaitEvent(Rig& rig, uint32_t stream, uint32_t handle) {
  return rig.Submit(stream, protocol::WaitEventRecord{.handle = handle});
}

MR_TEST(two_timestamps_compare_once_both_were_reached) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, rig.EventHandle(a, Handle(0))));
  backend.controls.completes_at_once = false;
  const Ticket second = rig.EventHandle(a, Handle(1));
  MR_EXPECT(rig.Logs("a0 " + std::to_string(second) + " event_handle"));
  MR_EXPECT(rig.channel->Elapsed(Handle(0), Handle(1)).status().code() == StatusCode::kState);
  MR_EXPECT(rig.channel->Elapsed(Handle(0), Handle(7)).status().code() == StatusCode::kState);
  rig.Backend(0).Complete(second);
  auto forwards = rig.channel->Elapsed(Handle(0), Handle(1));
  auto backwards = rig.channel->Elapsed(Handle(1), Handle(0));
  MR_REQUIRE(forwards.ok() && backwards.ok());
  MR_EXPECT_EQ(forwards.value(), 1.0);
  MR_EXPECT_EQ(backwards.value(), -1.0);
}

MR_TEST(a_timestamp_is_recorded_once_and_another_kind_never_under_its_handle) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.EventHandle(a, Handle(0));
  const Ticket again = rig.EventHandle(a, Handle(0));
  const Ticket other = rig.EventHandle(a, Handle(0), EventKind::kInterprocess);
  const Ticket waited = WaitEvent(rig, a, Handle(0));
  const Ticket nothing = rig.EventHandle(a, Handle(3, 0));
  const Ticket strange = rig.EventHandle(a, Handle(4), static_cast<EventKind>(2));
  MR_EXPECT(rig.Completes(a, strange));
  const auto failures = rig.Failures(a);
  MR_EXPECT(failures.size() == 1 && failures[0].first == again && failures[0].last == strange);
  MR_EXPECT(failures[0].status.code() == StatusCode::kInternal);
  MR_EXPECT(again + 1 == other && other + 1 == waited && waited + 1 == nothing);
  MR_EXPECT(rig.channel->Elapsed(Handle(0), Handle(0)).ok());
  MR_EXPECT(rig.channel->ExportEvent(Handle(0)).status().code() == StatusCode::kState);
}

MR_TEST(a_event_is_kept_until_the_record_that_frees_it_completed) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, rig.EventHandle(a, Handle(0))));
  backend.controls.completes_at_once = false;
  const Ticket freed = FreeEvent(rig, a, Handle(0));
  MR_EXPECT(rig.Logs("a0 " + std::to_string(freed) + " nop"));
  MR_EXPECT(rig.channel->Elapsed(Handle(0), Handle(0)).status().code() == StatusCode::kState);
  MR_EXPECT_EQ(backend.controls.live_events.load(), 1);
  backend.controls.completes_at_once = true;
  rig.Backend(0).Complete(freed);
  // The handle is reused for the next event; when that completes, the first one is freed.
  rig.EventHandle(a, Handle(0, 2));
  MR_EXPECT(rig.Completes(a, FreeEvent(rig, a, Handle(0, 2))));
  MR_EXPECT(rig.Completes(a, FreeEvent(rig, a, Handle(0, 2))));  // The handle is not bound any more.
  MR_EXPECT_EQ(backend.controls.live_events.load(), 1);
  MR_EXPECT(rig.Completes(a, rig.Submit(a, protocol::StreamDestroyRecord{})));
  MR_EXPECT_EQ(backend.controls.live_events.load(), 0);
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, rig.Nop(b).ticket));
  MR_EXPECT(rig.Failures(b).empty());
}

MR_TEST(a_loop_that_records_and_frees_stays_small) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  int most = 0;
  for (uint32_t n = 0; n < 20000; ++n) {
    const uint32_t handle = Handle(n % 1000, 1 + n / 1000);
    rig.EventHandle(a, handle);
    const Ticket freed = FreeEvent(rig, a, handle);
    if (n % 500 == 0) MR_EXPECT(rig.Completes(a, freed));
    most = std::max(most, backend.controls.live_events.load());
  }
  MR_EXPECT(rig.Completes(a, rig.channel->LastTicket(a)));
  MR_EXPECT(rig.Failures(a).empty());
  MR_EXPECT(most < 2 * static_cast<int>(protocol::kStreamWindow));
}

MR_TEST(an_interprocess_event_is_recorded_again_exported_and_opened) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  auto exported = rig.channel->ExportEvent(Handle(0));
  MR_REQUIRE(exported.ok());
  rig.EventHandle(a, Handle(0), EventKind::kInterprocess);
  rig.EventHandle(a, Handle(0), EventKind::kInterprocess);
  MR_EXPECT(rig.channel->OpenEvent(Handle(1), exported.value()).ok());
  const Ticket waited = WaitEvent(rig, a, Handle(1));
  const Ticket unknown = WaitEvent(rig, a, Handle(2));
  const Ticket recorded = rig.EventHandle(a, Handle(1), EventKind::kInterprocess);
  MR_EXPECT(rig.Completes(a, recorded));
  MR_EXPECT(rig.Failures(a).empty());
  MR_EXPECT(backend.controls.log.Find("a0 " + std::to_string(waited) + " wait event_handle") >= 0);
  MR_EXPECT(backend.controls.log.Find("a0 " + std::to_string(unknown) + " nop") >= 0);
  MR_EXPECT_EQ(backend.controls.live_events.load(), 2);
  hal::IpcHandle wrong{};
  MR_EXPECT(rig.channel->OpenEvent(Handle(5), wrong).code() == StatusCode::kArgument);
  MR_EXPECT(rig.channel->Elapsed(Handle(0), Handle(0)).status().code() == StatusCode::kState);
}

MR_TEST(events_of_a_poisoned_stream_fail_and_are_freed) {
  RecordingBackend backend;
  Rig first(backend, 0);
  Rig second(backend, 1);
  const uint32_t a = first.Stream();
  const uint32_t b = second.Stream();
  first.channel->Hold(true);
  second.Wait(b, first, a, first.Nop(a).ticket);
  const Ticket marked = second.EventHandle(b, Handle(0));
  const Ticket waited = WaitEvent(second, b, Handle(0));
  const Ticket freed = FreeEvent(second, b, Handle(0));
  first.channel->MarkLost(Status(StatusCode::kDeviceLost, "lost by the test"));
  MR_EXPECT(second.Completes(b, freed));
  const auto failures = second.Failures(b);
  MR_EXPECT(failures.size() == 2 && failures[1].first == marked && failures[1].last == waited);
  MR_EXPECT(second.channel->Elapsed(Handle(0), Handle(0)).status().code() == StatusCode::kState);
  first.channel->Hold(false);
}

MR_TEST(a_poisoned_stream_waits_for_another_process_before_it_fails) {
  RecordingBackend backend;
  Rig first(backend, 0);
  Rig second(backend, 1);
  const uint32_t a = first.Stream();
  const uint32_t b = second.Stream();
  auto exported = second.channel->ExportEvent(Handle(0));
  MR_REQUIRE(exported.ok());
  first.channel->Hold(true);
  second.Wait(b, first, a, first.Nop(a).ticket);
  first.channel->MarkLost(Status(StatusCode::kDeviceLost, "lost by the test"));
  const Ticket waited = WaitEvent(second, b, Handle(0));
  MR_EXPECT(second.Completes(b, waited));
  MR_EXPECT(backend.controls.log.Find("b0 " + std::to_string(waited) + " wait event_handle") >= 0);
  const auto failures = second.Failures(b);
  MR_EXPECT(failures.size() == 2 && failures[1].first == waited && failures[1].last == waited);
  first.channel->Hold(false);
}

MR_TEST(what_follows_a_refused_wait_for_another_process_fails) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  rig.Alloc(a, Handle(0), 16);
  auto exported = rig.channel->ExportEvent(Handle(0));
  MR_REQUIRE(exported.ok());
  backend.controls.refuse_waits = 1;
  const Ticket waited = WaitEvent(rig, a, Handle(0));
  const Ticket filled = rig.Fill(a, Handle(0), 16);
  MR_EXPECT(rig.Completes(a, filled));
  const auto failures = rig.Failures(a);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[0].first == waited && failures[0].status.code() == StatusCode::kLaunchFailed);
  MR_EXPECT(failures[1].first == filled && failures[1].status.code() == StatusCode::kUpstream);
  MR_EXPECT(failures[1].cause == failures[0].id && failures[1].lost_device == 0);
  const Ticket read = rig.Copy(b, Handle(0), Handle(0), 16);
  MR_EXPECT(rig.Completes(b, read));
  MR_EXPECT(rig.Failures(b).at(0).status.code() == StatusCode::kUpstream);
}

MR_TEST(a_closed_device_has_no_events) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, rig.EventHandle(a, Handle(0))));
  rig.channel->Close();
  MR_EXPECT_EQ(backend.controls.live_events.load(), 0);
  MR_EXPECT(rig.channel->Elapsed(Handle(0), Handle(0)).status().code() == StatusCode::kState);
  MR_EXPECT(rig.channel->ExportEvent(Handle(0)).status().code() == StatusCode::kState);
  MR_EXPECT(rig.channel->OpenEvent(Handle(1), {}).code() == StatusCode::kState);
}

}  // namespace
}  // namespace millrace::testing
