// Allocations without free memory, and frees whose streams are parked: an allocation waits for such a free unless the
// free waits for the allocation.
#include <thread>

#include "channel_rig.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

constexpr uint64_t kMemory = 100;

/// A device whose memory is all in Handle(0) and Handle(1), half in each, with three existing streams.
struct Full {
  Full() : rig(backend), a(rig.Stream()), b(rig.Stream()), c(rig.Stream()) {
    backend.controls.free_bytes = kMemory;
    MR_CHECK(rig.Completes(a, rig.Alloc(a, Handle(0), kMemory / 2)));
    MR_CHECK(rig.Completes(a, rig.Alloc(a, Handle(1), kMemory / 2)));
    MR_CHECK(rig.Completes(b, 1) && rig.Completes(c, 1));
  }
  bool IsOutOfMemory(uint32_t stream) {
    const auto failures = rig.Failures(stream);
    return failures.size() == 1 && failures[0].status.code() == StatusCode::kOutOfMemory;
  }

  RecordingBackend backend;
  Rig rig;
  const uint32_t a;
  const uint32_t b;
  const uint32_t c;
};

MR_TEST(a_free_behind_a_held_stream_is_waited_for) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held = rig.Hold(full.a);
  MR_EXPECT(rig.Parks(full.a, ParkReason::kHold));
  const Ticket freed = rig.Free(full.a, Handle(0));
  const Ticket made = rig.Alloc(full.b, Handle(2), 50);
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  rig.channel->ReleaseHold(full.a, held);
  MR_EXPECT(rig.Completes(full.a, freed) && rig.Completes(full.b, made));
  MR_EXPECT(rig.Failures(full.b).empty());
}

MR_TEST(a_free_that_waits_for_a_held_stream_is_waited_for_until_it_has_run) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held = rig.Hold(full.a);
  const Ticket used = rig.Fill(full.a, Handle(0), 1);
  rig.Wait(full.c, rig, full.a, used);
  const Ticket freed = rig.Free(full.c, Handle(0));
  const Ticket made = rig.Alloc(full.b, Handle(2), 50);
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory) && rig.Parks(full.c, ParkReason::kPoint));
  full.backend.controls.completes_at_once = false;
  rig.channel->ReleaseHold(full.a, held);
  // Issued and not completed: the allocation still waits for it.
  MR_EXPECT(Eventually([&] { return rig.channel->FindStream(full.c)->Issued() == freed; }));
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  full.backend.controls.completes_at_once = true;
  rig.Backend(full.a).Complete(used);
  rig.Backend(full.c).Complete(freed);
  MR_EXPECT(rig.Completes(full.b, made) && rig.Failures(full.b).empty());
}

MR_TEST(an_allocation_that_several_parked_frees_make_room_for_waits_for_all_of_them) {
  Full full;
  Rig& rig = full.rig;
  const Ticket first = rig.Hold(full.a);
  rig.Free(full.a, Handle(0));
  const Ticket second = rig.Hold(full.c);
  rig.Free(full.c, Handle(1));
  const Ticket made = rig.Alloc(full.b, Handle(2), kMemory);
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  rig.channel->ReleaseHold(full.a, first);
  MR_EXPECT(Eventually([&] { return full.backend.controls.free_bytes.load() == 50; }));
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  rig.channel->ReleaseHold(full.c, second);
  MR_EXPECT(rig.Completes(full.b, made) && rig.Failures(full.b).empty());
}

MR_TEST(an_allocation_fails_whose_parked_frees_do_not_suffice) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held = rig.Hold(full.a);
  rig.Free(full.a, Handle(0));
  const Ticket made = rig.Alloc(full.b, Handle(2), kMemory);
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  rig.channel->ReleaseHold(full.a, held);
  MR_EXPECT(rig.Completes(full.b, made) && full.IsOutOfMemory(full.b));
}

MR_TEST(a_free_that_waits_for_the_allocation_is_not_waited_for) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held = rig.Hold(full.b);
  const Ticket made = rig.Alloc(full.b, Handle(2), 50);
  // Through another stream.
  const Ticket waiting = rig.Wait(full.a, rig, full.b, made);
  rig.Wait(full.c, rig, full.a, waiting);
  const Ticket freed = rig.Free(full.c, Handle(0));
  MR_EXPECT(rig.Parks(full.a, ParkReason::kPoint) && rig.Parks(full.c, ParkReason::kPoint) && rig.HasReadAll());
  rig.channel->ReleaseHold(full.b, held);
  MR_EXPECT(rig.Completes(full.b, made) && full.IsOutOfMemory(full.b));
  MR_EXPECT(rig.Completes(full.c, freed));
}

MR_TEST(a_free_that_comes_to_wait_for_the_allocation_is_given_up) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held_b = rig.Hold(full.b);
  const Ticket made = rig.Alloc(full.b, Handle(2), 50);
  const Ticket held_a = rig.Hold(full.a);
  rig.Wait(full.a, rig, full.b, made);
  const Ticket freed = rig.Free(full.a, Handle(0));
  MR_EXPECT(rig.Parks(full.a, ParkReason::kHold) && rig.Parks(full.b, ParkReason::kHold) && rig.HasReadAll());
  rig.channel->ReleaseHold(full.b, held_b);
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  rig.channel->ReleaseHold(full.a, held_a);
  MR_EXPECT(rig.Completes(full.b, made) && full.IsOutOfMemory(full.b));
  MR_EXPECT(rig.Completes(full.a, freed));
}

MR_TEST(a_free_that_comes_to_need_the_allocated_memory_is_given_up) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held = rig.Hold(full.a);
  // Only the memory orders them.
  rig.Fill(full.a, Handle(2), 1);
  const Ticket freed = rig.Free(full.a, Handle(0));
  const Ticket made = rig.Alloc(full.b, Handle(2), 50);
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  rig.channel->ReleaseHold(full.a, held);
  MR_EXPECT(rig.Completes(full.b, made) && full.IsOutOfMemory(full.b));
  MR_EXPECT(rig.Completes(full.a, freed));
}

MR_TEST(of_two_allocations_that_wait_for_each_others_frees_one_fails_and_the_other_gets_its_memory) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held_a = rig.Hold(full.a);
  const Ticket made_a = rig.Alloc(full.a, Handle(2), 50);
  rig.Free(full.a, Handle(0));
  const Ticket held_b = rig.Hold(full.b);
  const Ticket made_b = rig.Alloc(full.b, Handle(3), 50);
  rig.Free(full.b, Handle(1));
  MR_EXPECT(rig.Parks(full.a, ParkReason::kHold) && rig.Parks(full.b, ParkReason::kHold) && rig.HasReadAll());
  rig.channel->ReleaseHold(full.a, held_a);
  MR_EXPECT(rig.Parks(full.a, ParkReason::kMemory));
  rig.channel->ReleaseHold(full.b, held_b);
  MR_EXPECT(rig.Completes(full.a, made_a) && rig.Completes(full.b, made_b));
  MR_EXPECT_EQ(rig.Failures(full.a).size() + rig.Failures(full.b).size(), 1u);
}

MR_TEST(a_free_behind_an_unissued_point_of_another_device_is_not_waited_for) {
  RecordingBackend backend;
  Rig rig(backend, 0);
  Rig other(backend, 1);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  const uint32_t far = other.Stream();
  backend.controls.free_bytes = kMemory;
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), kMemory)) && rig.Completes(b, 1));
  const Ticket held = other.Hold(far);
  MR_EXPECT(other.Parks(far, ParkReason::kHold));
  rig.Wait(a, other, far, held);
  rig.Free(a, Handle(0));
  MR_EXPECT(rig.Parks(a, ParkReason::kPoint) && rig.HasReadAll());
  const Ticket made = rig.Alloc(b, Handle(1), 50);
  MR_EXPECT(rig.Completes(b, made));
  MR_EXPECT_EQ(rig.Failures(b).size(), 1u);
  other.channel->ReleaseHold(far, held);
}

MR_TEST(memory_for_other_processes_waits_for_parked_frees_too) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held = rig.Hold(full.a);
  rig.Free(full.a, Handle(0));
  const Ticket made = rig.Alloc(full.b, Handle(2), 50, protocol::AllocKind::kInterprocess);
  MR_EXPECT(rig.Logs("allocates 50") && rig.Parks(full.b, ParkReason::kMemory));
  MR_EXPECT(rig.Parks(full.a, ParkReason::kHold));
  rig.channel->ReleaseHold(full.a, held);
  MR_EXPECT(rig.Completes(full.b, made) && rig.Failures(full.b).empty());
}

MR_TEST(a_device_that_closes_while_an_allocation_waits_for_a_parked_free_runs_both) {
  Full full;
  Rig& rig = full.rig;
  const Ticket held = rig.Hold(full.a);
  rig.Free(full.a, Handle(0));
  const Ticket made = rig.Alloc(full.b, Handle(2), 50);
  MR_EXPECT(rig.Parks(full.b, ParkReason::kMemory));
  std::thread closing([&] { rig.channel->Close(); });
  rig.channel->ReleaseHold(full.a, held);
  closing.join();
  MR_EXPECT(rig.Completed(full.b) >= made && rig.Failures(full.b).empty());
}

}  // namespace
