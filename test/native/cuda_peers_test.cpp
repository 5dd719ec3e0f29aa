// Peers of the CUDA backend: access permissions, copies between devices, and routes that corrupt data. On the fake
// driver with three devices, or on this machine's (see cuda_backend_test.cpp) if it has two.
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_fixture.h"
#include "cuda_side.h"
#include "fake_controls.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT
using protocol::PeerRoute;
using protocol::PeerWhat;

hal::PeerState PeerOf(Opened& opened, uint32_t ordinal, PeerWhat what) {
  auto state = opened.device->Peer(ordinal, what);
  MR_EXPECT(state.ok());
  return state.ok() ? state.value() : hal::PeerState{};
}

// First: a process loads the driver only once, so a child process tests the machine without peers.
MR_TEST(DevicesThatAreNoPeers) {
  if (!OnFake()) return;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("MILLRACE_FAKE_CUDA_PEERS", "0", 1);
    {
      Opened opened(0);
      for (const PeerWhat what : {PeerWhat::kMemory, PeerWhat::kPool}) {
        MR_EXPECT(!PeerOf(opened, 1, what).can_grant);
        MR_EXPECT(!PeerOf(opened, 1, what).is_granted);
        MR_EXPECT_EQ(Code(opened.device->SetPeer(1, what, true)), static_cast<int>(StatusCode::kUnsupported));
        MR_EXPECT(opened.device->SetPeer(1, what, false).ok());
      }
    }
    std::fflush(stdout);
    _exit(FailedExpectations() == 0 ? 0 : 1);
  }
  int status = 0;
  MR_REQUIRE(waitpid(child, &status, 0) == child);
  MR_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

MR_TEST(ADeviceIsItsOwnPeer) {
  Opened opened(0);
  for (const PeerWhat what : {PeerWhat::kMemory, PeerWhat::kPool}) {
    for (const bool is_granted : {false, true}) {
      MR_EXPECT(opened.device->SetPeer(0, what, is_granted).ok());
      MR_EXPECT(PeerOf(opened, 0, what).can_grant);
      MR_EXPECT(PeerOf(opened, 0, what).is_granted);
    }
  }
  MR_EXPECT(!opened.device->Peer(40, PeerWhat::kMemory).ok());
  MR_EXPECT(!opened.device->SetPeer(1000, PeerWhat::kMemory, true).ok());
  auto route = opened.device->ProbePeer(*opened.device);
  MR_REQUIRE(route.ok());
  MR_EXPECT(route.value() == PeerRoute::kDirect);
}

// A grant on device 0 lets device 1 access its memory, not the reverse.
MR_TEST(PermissionsGoOneWayAndAreRemembered) {
  if (Devices() < 2) return;
  for (const PeerWhat what : {PeerWhat::kMemory, PeerWhat::kPool}) {
    const PeerWhat other = what == PeerWhat::kMemory ? PeerWhat::kPool : PeerWhat::kMemory;
    {
      Opened opened(0);
      MR_EXPECT(PeerOf(opened, 1, what).can_grant);
      MR_EXPECT(!PeerOf(opened, 1, what).is_granted);
      MR_EXPECT(opened.device->SetPeer(1, what, false).ok());
      MR_REQUIRE(opened.device->SetPeer(1, what, true).ok());
      MR_REQUIRE(opened.device->SetPeer(1, what, true).ok());
      MR_EXPECT(PeerOf(opened, 1, what).is_granted);
      MR_EXPECT(!PeerOf(opened, 1, other).is_granted);
      if (OnFake()) MR_EXPECT_EQ(Reaches(1, 0), what == PeerWhat::kMemory);
      if (OnFake()) MR_EXPECT(!Reaches(0, 1));
    }
    Opened again(0);
    MR_EXPECT(PeerOf(again, 1, what).is_granted);
    {
      Opened peer(1);
      MR_EXPECT(!PeerOf(peer, 0, what).is_granted);
    }
    MR_REQUIRE(again.device->BindChannelThread().ok());
    MR_REQUIRE(again.device->SetPeer(1, what, false).ok());
    MR_EXPECT(!PeerOf(again, 1, what).is_granted);
    if (OnFake()) MR_EXPECT(!Reaches(1, 0));
  }
}

/// Copies from one device to another on a stream of a third or of one of them, behind a gate, and checks the bytes.
void CopyAndLook(Side& to, Side& from, Side& on, PeerRoute route, uint64_t bytes) {
  Pinned pattern(*from.opened.device, bytes);
  Pinned seen(*to.opened.device, bytes);
  for (uint64_t i = 0; i < bytes; ++i) pattern.data[i] = static_cast<std::byte>((i * 31 + (i >> 12)) & 0xff);
  std::memset(seen.data, 0x11, bytes);
  from.Bind();
  MR_REQUIRE(from.stream->Copy(++from.ticket, from.memory->address(), pattern.data, bytes).ok());
  MR_REQUIRE(Finish(*from.stream, from.ticket));
  on.Bind();
  Gate gate(on.opened);
  MR_REQUIRE(gate.Launch(*on.stream, ++on.ticket).ok());
  const hal::PeerCopy copy = {
      to.memory->address(), to.opened.device.get(), from.memory->address(), from.opened.device.get(), bytes, route};
  if (route == PeerRoute::kStaged && !on.stream->HasStaging(bytes)) MR_REQUIRE(on.stream->MakeStaging(bytes).ok());
  MR_REQUIRE(on.stream->CopyPeer(++on.ticket, copy).ok());
  const Ticket copied = on.ticket;
  MR_EXPECT(on.stream->Resolve(copied).value() < copied);
  gate.Open();
  MR_REQUIRE(Finish(*on.stream, copied));
  to.Bind();
  MR_REQUIRE(to.stream->Copy(++to.ticket, seen.data, to.memory->address(), bytes).ok());
  MR_REQUIRE(Finish(*to.stream, to.ticket));
  MR_EXPECT(std::memcmp(seen.data, pattern.data, bytes) == 0);
}

MR_TEST(CopiesTravelOnAnyStreamByEitherRoute) {
  if (Devices() < 2) return;
  // More than two chunks of a copy through the host, and not a multiple of them.
  constexpr uint64_t kBytes = (9 << 20) + 5;
  Side zero(0, kBytes);
  Side one(1, kBytes);
  std::unique_ptr<Side> third = Devices() > 2 ? std::make_unique<Side>(2, kBytes) : nullptr;
  for (const PeerRoute route : {PeerRoute::kDirect, PeerRoute::kStaged}) {
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, kBytes}) {
      CopyAndLook(one, zero, zero, route, bytes);
      CopyAndLook(one, zero, one, route, bytes);
      CopyAndLook(zero, one, zero, route, bytes);
      if (third != nullptr) CopyAndLook(zero, one, *third, route, bytes);
      // Both ends on one device, a stream of another.
      if (third != nullptr) CopyAndLook(*third, *third, one, route, bytes);
    }
  }
  zero.Bind();
  const hal::PeerCopy nothing = {
      zero.memory->address(), zero.opened.device.get(), one.memory->address(), one.opened.device.get(), 0,
      PeerRoute::kDirect};
  MR_EXPECT(zero.stream->CopyPeer(++zero.ticket, nothing).ok());
  MR_EXPECT(Finish(*zero.stream, zero.ticket));
}

// See Stream::Copy in hal.h: memory of another device on this one's stream, when the other end is host memory.
MR_TEST(HostMemoryReachesAnotherDevicesMemory) {
  if (Devices() < 2) return;
  constexpr uint64_t kBytes = (5 << 20) + 7;
  Side zero(0, kBytes);
  Side one(1, kBytes);
  Pinned sent(*zero.opened.device, kBytes);
  Pinned seen(*zero.opened.device, kBytes);
  for (uint64_t i = 0; i < kBytes; ++i) sent.data[i] = static_cast<std::byte>(i * 7 + (i >> 10));
  zero.Bind();
  Gate gate(zero.opened);
  MR_REQUIRE(gate.Launch(*zero.stream, ++zero.ticket).ok());
  MR_REQUIRE(zero.stream->Copy(++zero.ticket, one.memory->address(), sent.data, kBytes).ok());
  MR_REQUIRE(zero.stream->Copy(++zero.ticket, seen.data, one.memory->address(), kBytes).ok());
  MR_EXPECT(zero.stream->Resolve(zero.ticket).value() < zero.ticket);
  gate.Open();
  MR_REQUIRE(Finish(*zero.stream, zero.ticket));
  MR_EXPECT(std::memcmp(seen.data, sent.data, kBytes) == 0);
  // And through the blocking-calls thread, with memory that is not page-locked.
  std::vector<std::byte> up(kBytes, std::byte{0x42});
  std::vector<std::byte> down(kBytes);
  MR_REQUIRE(zero.stream->CopyPageable(one.memory->address(), up.data(), kBytes).ok());
  MR_REQUIRE(zero.stream->CopyPageable(down.data(), one.memory->address(), kBytes).ok());
  MR_EXPECT(down == up);
}

// A later overwrite of the source waits for the copy, and an earlier one of the destination precedes it.
MR_TEST(StagedCopiesKeepTheStreamsOrder) {
  if (Devices() < 2) return;
  constexpr uint64_t kBytes = 10 << 20;
  Side zero(0, kBytes);
  Side one(1, kBytes);
  Pinned seen(*one.opened.device, kBytes);
  zero.Bind();
  const hal::PeerCopy copy = {
      one.memory->address(), one.opened.device.get(), zero.memory->address(), zero.opened.device.get(), kBytes,
      PeerRoute::kStaged};
  MR_REQUIRE(zero.stream->MakeStaging(kBytes).ok());
  for (uint64_t round = 1; round <= 20; ++round) {
    zero.Bind();
    MR_REQUIRE(zero.stream->Fill(++zero.ticket, zero.memory->address(), 1, round, kBytes).ok());
    MR_REQUIRE(zero.stream->CopyPeer(++zero.ticket, copy).ok());
    const Ticket copied = zero.ticket;
    MR_REQUIRE(zero.stream->Fill(++zero.ticket, zero.memory->address(), 1, 0xee, kBytes).ok());
    one.Bind();
    MR_REQUIRE(one.stream->Wait(++one.ticket, *zero.stream, copied).ok());
    MR_REQUIRE(one.stream->Copy(++one.ticket, seen.data, one.memory->address(), kBytes).ok());
    MR_REQUIRE(Finish(*one.stream, one.ticket));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kBytes; ++i) wrong += seen.data[i] != static_cast<std::byte>(round);
    MR_REQUIRE(wrong == 0);
    MR_REQUIRE(Finish(*zero.stream, zero.ticket));
  }
}

MR_TEST(AProbeFindsTheRoute) {
  if (Devices() < 2) return;
  Opened zero(0);
  Opened one(1);
  const auto probe = [&] {
    auto route = zero.device->ProbePeer(*one.device);
    MR_EXPECT(route.ok());
    return route.ok() ? route.value() : PeerRoute::kDirect;
  };
  MR_EXPECT(probe() == PeerRoute::kDirect);
  if (!OnFake()) return;
  BreakPeers("always");
  MR_EXPECT(probe() == PeerRoute::kStaged);
  BreakPeers("");
  // A route that fails, and one that fails only in the reverse direction.
  for (const char* failure : {"cuMemcpyPeerAsync:1:1", "cuMemcpyPeerAsync:2:801", "cuMemAllocAsync:1:2"}) {
    FailCalls(failure);
    MR_EXPECT(probe() == PeerRoute::kStaged);
    FailCalls("");
  }
  MR_EXPECT(probe() == PeerRoute::kDirect);
}

// The driver uses another route once access is granted, so the route is probed before the grant is kept.
MR_TEST(APermissionThatBreaksCopiesIsTakenBack) {
  if (!OnFake()) return;
  Opened zero(0);
  Opened one(1);
  BreakPeers("access");
  for (const PeerWhat what : {PeerWhat::kMemory, PeerWhat::kPool}) {
    MR_EXPECT_EQ(Code(zero.device->SetPeer(1, what, true)), static_cast<int>(StatusCode::kUnsupported));
    MR_EXPECT(!PeerOf(zero, 1, what).is_granted);
    MR_EXPECT(!Reaches(1, 0));
  }
  MR_EXPECT(zero.device->ProbePeer(*one.device).value() == PeerRoute::kDirect);
  BreakPeers("");
  MR_EXPECT(zero.device->SetPeer(1, PeerWhat::kPool, true).ok());
  MR_EXPECT(zero.device->SetPeer(1, PeerWhat::kPool, false).ok());
}

// Rule 3, during a copy that consists of many calls.
MR_TEST(AStagedCopyThatFailsHalfwayLeavesItsTicketOpen) {
  if (!OnFake()) return;
  constexpr uint64_t kBytes = 12 << 20;
  Side zero(0, kBytes);
  Side one(1, kBytes);
  const hal::PeerCopy copy = {
      one.memory->address(), one.opened.device.get(), zero.memory->address(), zero.opened.device.get(), kBytes,
      PeerRoute::kStaged};
  const std::vector<std::unique_ptr<hal::Stream>> others = TakeKept(one.opened);
  zero.Bind();
  FailCalls("cuMemHostRegister:1:2");
  MR_EXPECT_EQ(Code(zero.stream->MakeStaging(kBytes)), static_cast<int>(StatusCode::kOutOfMemory));
  FailCalls("");
  MR_EXPECT(!zero.stream->HasStaging(1) && zero.stream->HasStaging(0));
  MR_REQUIRE(zero.stream->MakeStaging(kBytes).ok());
  MR_EXPECT(zero.stream->HasStaging(kBytes) && !zero.stream->HasStaging(uint64_t{1} << 40));
  // The hidden stream is created first and is kept. The channel allocates no block.
  for (const char* failure : {"cuStreamCreateWithPriority:1:2", "cuMemcpyAsync:3:1", "cuMemcpyAsync:4:1"}) {
    FailCalls(failure);
    MR_REQUIRE(!zero.stream->CopyPeer(++zero.ticket, copy).ok());
    FailCalls("");
    MR_EXPECT(zero.stream->Nop(zero.ticket).ok());
    MR_REQUIRE(Finish(*zero.stream, zero.ticket));
  }
  FailCalls("cuMemHostRegister:0:2");
  MR_EXPECT(zero.stream->CopyPeer(++zero.ticket, copy).ok());
  FailCalls("");
  MR_EXPECT(Finish(*zero.stream, zero.ticket));
}

// Loses device 2, so it runs last.
MR_TEST(ALostPeerIsNoLossOfTheOthers) {
  if (!OnFake() || Devices() < 3) return;
  constexpr uint64_t kBytes = 4096;
  Side zero(0, kBytes);
  Opened lost(2);
  auto stream = lost.NewStream(0);
  auto memory = stream->Allocate(1, kBytes);
  MR_REQUIRE(memory.ok());
  std::byte* const address = memory.value()->address();
  Gate gate(lost);
  FailCalls("kernel:1:700");
  std::ignore = gate.Launch(*stream, 2);
  MR_EXPECT(Eventually([&] { return !stream->Check().ok(); }));
  FailCalls("");
  zero.Bind();
  for (const PeerRoute route : {PeerRoute::kDirect, PeerRoute::kStaged}) {
    const hal::PeerCopy out = {address, lost.device.get(), zero.memory->address(), zero.opened.device.get(), kBytes,
                               route};
    const hal::PeerCopy in = {
        zero.memory->address(), zero.opened.device.get(), address, lost.device.get(), kBytes, route};
    for (const hal::PeerCopy& copy : {out, in}) {
      MR_EXPECT_EQ(Code(zero.stream->CopyPeer(zero.ticket + 1, copy)), static_cast<int>(StatusCode::kUpstream));
      MR_EXPECT(zero.stream->Nop(++zero.ticket).ok());
    }
  }
  MR_EXPECT(Finish(*zero.stream, zero.ticket));
  MR_EXPECT_EQ(Code(zero.opened.device->ProbePeer(*lost.device).status()), static_cast<int>(StatusCode::kUpstream));
  MR_EXPECT_EQ(Code(zero.opened.device->SetPeer(2, PeerWhat::kMemory, true)), static_cast<int>(StatusCode::kUpstream));
  MR_EXPECT(zero.stream->Check().ok());
}

}  // namespace
