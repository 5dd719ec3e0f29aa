// Launches with memory of another device: they need a grant, wait for the memory, and keep a revocation waiting.
#include "graph_rig.h"

namespace millrace::testing {
namespace {

using protocol::PeerWhat;

constexpr uint64_t kBytes = 16;

/// A device that launches, and another one that has memory.
struct Two {
  RecordingBackend backend;
  Rig rig{backend, 0};
  Rig owner{backend, 1};
  const uint32_t a = rig.Stream();
  const uint32_t b = owner.Stream();

  Two() { Install(rig); }

  Ticket Launch(uint32_t handle, Access access = Access::kRead) {
    const protocol::LaunchArg where{.kind = static_cast<uint8_t>(protocol::ArgKind::kElsewhere),
                                    .size = static_cast<uint16_t>(MemorySpace::kDevice),
                                    .handle = owner.channel->id(),
                                    .value = kBytes};
    ByteList bytes = LaunchBytes(kKernel, {where, MemoryArg(handle, access)});
    std::memcpy(bytes.data() + offsetof(protocol::RecordHeader, stream), &a, sizeof(a));
    return rig.channel->Submit(bytes).ticket;
  }
  bool SetGrant(bool is_granted) { return owner.channel->SetPeer(0, PeerWhat::kPool, is_granted).value(); }
  StatusCode LastFailure() {
    const std::vector<Failure> failures = rig.Failures(a);
    return failures.empty() ? StatusCode::kOk : failures.back().status.code();
  }
};

MR_TEST(a_launch_with_memory_of_another_device_needs_a_grant) {
  Two two;
  MR_EXPECT(two.owner.Completes(two.b, two.owner.Alloc(two.b, Handle(1), kBytes)));
  MR_EXPECT(two.rig.Completes(two.a, two.Launch(Handle(1))));
  MR_EXPECT(two.LastFailure() == StatusCode::kState);
  MR_EXPECT(two.SetGrant(true));
  const size_t failed = two.rig.Failures(two.a).size();
  MR_EXPECT(two.rig.Completes(two.a, two.Launch(Handle(1))));
  MR_EXPECT_EQ(two.rig.Failures(two.a).size(), failed);
  // Memory outside of the pool has a switch of its own.
  two.owner.Alloc(two.b, Handle(2), kBytes, protocol::AllocKind::kInterprocess);
  MR_EXPECT(two.rig.Completes(two.a, two.Launch(Handle(2))));
  MR_EXPECT(two.rig.Failures(two.a).size() == failed + 1 && two.LastFailure() == StatusCode::kState);
  MR_EXPECT(two.SetGrant(false));
}

MR_TEST(a_launch_waits_until_the_other_device_has_allocated_the_memory) {
  Two two;
  MR_EXPECT(two.SetGrant(true));
  const Ticket launched = two.Launch(Handle(1), Access::kWrite);
  MR_EXPECT(two.rig.Parks(two.a, ParkReason::kPoint));
  two.owner.Alloc(two.b, Handle(1), kBytes);
  MR_EXPECT(two.rig.Completes(two.a, launched));
  MR_EXPECT(two.rig.Failures(two.a).empty());
  MR_EXPECT(two.SetGrant(false));
}

MR_TEST(a_revocation_waits_for_issued_launches_and_refuses_later_ones) {
  Two two;
  MR_EXPECT(two.SetGrant(true));
  MR_EXPECT(two.owner.Completes(two.b, two.owner.Alloc(two.b, Handle(1), kBytes)));
  MR_EXPECT(two.rig.Completes(two.a, 1));
  two.backend.controls.completes_at_once = false;
  const Ticket issued = two.Launch(Handle(1));
  MR_EXPECT(Eventually([&] { return two.rig.channel->FindStream(two.a)->Issued() == issued; }));
  MR_EXPECT(!two.SetGrant(false));
  MR_EXPECT(!two.owner.channel->Peer(0, PeerWhat::kPool).value().is_granted);
  const Ticket late = two.Launch(Handle(1));
  MR_EXPECT(Eventually([&] { return two.rig.channel->FindStream(two.a)->Issued() == late; }));
  MR_EXPECT(two.LastFailure() == StatusCode::kState);
  two.rig.Backend(0).Complete(late);
  MR_EXPECT(two.SetGrant(false));
}

}  // namespace
}  // namespace millrace::testing
