// Streams whose records can only fail: they waited for a lost device, or could not be created. Records that wait for
// them rely on their order, so they fail in order.
#include <string>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

MR_TEST(a_stream_that_waits_for_a_lost_device_fails_and_holds_nobody_up) {
  RecordingBackend backend;
  Rig first(backend, 0);
  Rig second(backend, 1);
  const uint32_t a = first.Stream();
  const uint32_t b = second.Stream();
  const uint32_t c = second.Stream();
  MR_EXPECT(first.Completes(a, 1) && second.Completes(c, 1));
  second.Alloc(b, Handle(0), 16);
  first.channel->Hold(true);
  const Ticket recorded = first.Nop(a).ticket;
  second.Wait(b, first, a, recorded);
  MR_EXPECT(second.Parks(b, ParkReason::kPoint));
  first.channel->MarkLost(Status(StatusCode::kDeviceLost, "lost by the test"));
  const Ticket filled = second.Fill(b, Handle(0), 16);
  const Ticket allocated = second.Alloc(b, Handle(1), 16);
  const Ticket freed = second.Free(b, Handle(1));
  MR_EXPECT(second.Completes(b, freed));
  const auto failures = second.Failures(b);
  MR_EXPECT(failures.size() == 2 && failures[1].first == filled && failures[1].last == allocated);
  MR_EXPECT(failures[1].status.code() == StatusCode::kDeviceLost && failures[1].cause == failures[0].id);
  for (const Failure& failure : failures) MR_EXPECT(failure.lost_device == first.channel->id());
  // Its destination is poisoned for other streams too.
  const Ticket read = second.Copy(c, Handle(0), Handle(0), 16);
  MR_EXPECT(second.Completes(c, read));
  MR_EXPECT(second.Failures(c).at(0).status.code() == StatusCode::kUpstream);
  first.channel->Hold(false);
}

/// Two devices with a stream each.
struct Living {
  explicit Living(RecordingBackend& backend) : backend(backend), own(backend, 1), other(backend, 2) {
    near = own.Stream();
    far = other.Stream();
    bystander = own.Stream();
    own.Alloc(near, Handle(0), 16);
    other.Alloc(far, Handle(0), 16);
    Turn();
    MR_EXPECT(own.Completes(near, 2) && other.Completes(far, 2));
  }
  /// Makes the channel process all submitted records.
  void Turn() { MR_EXPECT(own.Completes(bystander, own.Nop(bystander).ticket)); }
  /// The device accepts it, and the test completes it.
  Ticket BeginFill(Rig& rig, uint32_t stream, const char* name) {
    backend.controls.completes_at_once = false;
    const Ticket begun = rig.Fill(stream, Handle(0), 16);
    MR_EXPECT(rig.Logs(std::string(name) + " " + std::to_string(begun) + " fill"));
    backend.controls.completes_at_once = true;
    return begun;
  }
  /// `failing` waits for both streams and then writes. Returns its last ticket.
  Ticket FailsInItsOrder(uint32_t failing) {
    const Ticket first = BeginFill(own, near, "b0");
    const Ticket second = BeginFill(other, far, "c0");
    const Ticket waited = own.Wait(failing, own, near, first);
    own.Wait(failing, other, far, second);
    const Ticket last = own.Fill(failing, Handle(0), 16);
    Turn();
    MR_EXPECT_EQ(own.Completed(failing), waited - 1);
    own.Backend(0).Complete(first);
    MR_EXPECT(own.Completes(failing, waited));
    Turn();
    MR_EXPECT_EQ(own.Completed(failing), waited);
    other.Backend(0).Complete(second);
    MR_EXPECT(own.Completes(failing, last));
    return last;
  }

  RecordingBackend& backend;
  Rig own;
  Rig other;
  uint32_t near = 0;
  uint32_t far = 0;
  uint32_t bystander = 0;
};

MR_TEST(a_poisoned_stream_waits_for_devices_that_live_before_it_fails) {
  RecordingBackend backend;
  Rig lost(backend, 0);
  Living living(backend);
  Rig& own = living.own;
  const uint32_t a = lost.Stream();
  const uint32_t poisoned = own.Stream();
  lost.channel->Hold(true);
  const Ticket never = lost.Nop(a).ticket;
  const Ticket doom = own.Wait(poisoned, lost, a, never);
  lost.channel->MarkLost(Status(StatusCode::kDeviceLost, "lost by the test"));
  MR_EXPECT(own.Completes(poisoned, doom));
  const Ticket last = living.FailsInItsOrder(poisoned);
  const Ticket again = own.Wait(poisoned, lost, a, never);
  MR_EXPECT(own.Completes(poisoned, again));
  const auto failures = own.Failures(poisoned);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[1].first == doom + 1 && last < again && failures[1].last == again);
  MR_EXPECT(failures[1].status.code() == StatusCode::kDeviceLost && failures[1].cause == failures[0].id);
  lost.channel->Hold(false);
}

MR_TEST(a_wait_that_the_driver_refuses_ends_when_its_point_is_reached) {
  RecordingBackend backend;
  Living living(backend);
  Rig& own = living.own;
  const uint32_t waiting = own.Stream();
  for (const bool is_own : {true, false}) {
    Rig& rig = is_own ? own : living.other;
    const uint32_t awaited = is_own ? living.near : living.far;
    const Ticket begun = living.BeginFill(rig, awaited, is_own ? "b0" : "c0");
    backend.controls.refuse_waits = 1;
    own.Wait(waiting, rig, awaited, begun);
    const Ticket last = own.Fill(waiting, Handle(0), 16);
    MR_EXPECT(own.Parks(waiting, ParkReason::kPoint));
    MR_EXPECT(own.Completed(waiting) < last - 1);
    rig.Backend(0).Complete(begun);
    MR_EXPECT(own.Completes(waiting, last));
  }
  MR_EXPECT(own.Failures(waiting).empty());
}

MR_TEST(a_stream_that_could_not_be_created_waits_before_it_fails) {
  RecordingBackend backend;
  Living living(backend);
  backend.controls.refuse_streams = 1000;
  const uint32_t none = living.own.Stream();
  const Ticket last = living.FailsInItsOrder(none);
  const auto failures = living.own.Failures(none);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[1].first == 2 && failures[1].last == last && failures[1].status.code() == StatusCode::kState);
}

MR_TEST(a_stream_that_was_refused_is_created_by_its_next_record) {
  RecordingBackend backend;
  Living living(backend);
  backend.controls.refuse_streams = 1;
  const uint32_t late = living.own.Stream();
  MR_EXPECT(living.own.Completes(late, 1));
  MR_EXPECT(living.own.Completes(late, living.own.Fill(late, Handle(0), 16)));
  MR_EXPECT(living.own.Failures(late).size() == 1);
}

}  // namespace
}  // namespace millrace::testing
