// Graphs with copies between the pools of two devices, on the fake driver or on two GPUs (see cuda_backend_test.cpp).
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "cuda_fixture.h"
#include "cuda_graph_stream.h"
#include "cuda_side.h"
#include "fake_controls.h"
#include "graph_support.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT
using protocol::PeerRoute;
using protocol::PeerWhat;

/// More than two blocks of a copy through the host, and not a multiple of them.
constexpr uint64_t kPeerBytes = (9 << 20) + 5;

/// Whether device 1 may access the pool of device 0, as the user sees it.
bool IsGranted(Side& zero) {
  auto state = zero.opened.device->Peer(1, PeerWhat::kPool);
  return state.ok() && state.value().is_granted;
}

/// A graph of device 1 that copies from device 0 into it, and back into another place of device 0.
std::unique_ptr<hal::Graph> RoundTrip(Side& zero, Side& one, Side& back, PeerRoute route) {
  one.Bind();
  Nodes nodes(*one.opened.device);
  const auto copy = [&](Side& to, Side& from) {
    nodes.Then(hal::GraphPeerCopy{{to.memory->address(), to.opened.device.get(), from.memory->address(),
                                   from.opened.device.get(), kPeerBytes, route}});
  };
  copy(one, zero);
  copy(back, one);
  return nodes.Build();
}

/// Launches it on device 1 and compares the bytes that came back.
void LaunchAndLook(hal::Graph& graph, Side& zero, Side& one, Side& back, unsigned seed) {
  Pinned pattern(*zero.opened.device, kPeerBytes);
  Pinned seen(*back.opened.device, kPeerBytes);
  for (uint64_t i = 0; i < kPeerBytes; ++i)
    pattern.data[i] = static_cast<std::byte>((i * 31 + (i >> 12) + seed) & 0xff);
  zero.Bind();
  MR_REQUIRE(zero.stream->Copy(++zero.ticket, zero.memory->address(), pattern.data, kPeerBytes).ok());
  MR_REQUIRE(Finish(*zero.stream, zero.ticket));
  one.Bind();
  for (int launch = 0; launch < 2; ++launch) {
    MR_REQUIRE(one.stream->LaunchGraph(++one.ticket, {&graph, {}}).ok());
  }
  MR_REQUIRE(Finish(*one.stream, one.ticket));
  back.Bind();
  MR_REQUIRE(back.stream->Copy(++back.ticket, seen.data, back.memory->address(), kPeerBytes).ok());
  MR_REQUIRE(Finish(*back.stream, back.ticket));
  MR_EXPECT(std::memcmp(seen.data, pattern.data, kPeerBytes) == 0);
}

struct Sides {
  Side zero{0, kPeerBytes};
  Side one{1, kPeerBytes};
  Side back{0, kPeerBytes};
};

// First: a process loads the driver only once, so a child process tests the machine without peers.
MR_TEST(WithoutPeersCopiesGoThroughTheHost) {
  if (!OnFake()) return;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("MILLRACE_FAKE_CUDA_PEERS", "0", 1);
    {
      Sides on;
      LaunchAndLook(*RoundTrip(on.zero, on.one, on.back, PeerRoute::kDirect), on.zero, on.one, on.back, 1);
    }
    std::fflush(stdout);
    _exit(FailedExpectations() == 0 ? 0 : 1);
  }
  int status = 0;
  MR_REQUIRE(waitpid(child, &status, 0) == child);
  MR_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

MR_TEST(CopiesTakeEitherRoute) {
  if (Devices() < 2) return;
  Sides on;
  unsigned seed = 2;
  for (const PeerRoute route : {PeerRoute::kDirect, PeerRoute::kStaged}) {
    LaunchAndLook(*RoundTrip(on.zero, on.one, on.back, route), on.zero, on.one, on.back, seed++);
  }
}

MR_TEST(AGraphHasTheAccessThatItNeedsAndNobodyElseSeesIt) {
  if (Devices() < 2) return;
  Sides on;
  hal::Device& owner = *on.zero.opened.device;
  MR_EXPECT(!IsGranted(on.zero));
  auto first = RoundTrip(on.zero, on.one, on.back, PeerRoute::kDirect);
  auto second = RoundTrip(on.zero, on.one, on.back, PeerRoute::kDirect);
  MR_EXPECT(!IsGranted(on.zero));
  first.reset();
  LaunchAndLook(*second, on.zero, on.one, on.back, 10);
  // What a user grants stays after the graph, and what he revokes ends with it.
  MR_EXPECT(owner.SetPeer(1, PeerWhat::kPool, true).ok());
  MR_EXPECT(IsGranted(on.zero));
  LaunchAndLook(*second, on.zero, on.one, on.back, 11);
  second.reset();
  MR_EXPECT(IsGranted(on.zero));
  second = RoundTrip(on.zero, on.one, on.back, PeerRoute::kDirect);
  MR_EXPECT(owner.SetPeer(1, PeerWhat::kPool, false).ok());
  MR_EXPECT(!IsGranted(on.zero));
  LaunchAndLook(*second, on.zero, on.one, on.back, 12);
  second.reset();
  MR_EXPECT(!IsGranted(on.zero));
}

// Access would change the driver's route to one that corrupts data.
MR_TEST(AccessThatBreaksCopiesIsNotUsed) {
  if (!OnFake()) return;
  Sides on;
  BreakPeers("access");
  LaunchAndLook(*RoundTrip(on.zero, on.one, on.back, PeerRoute::kDirect), on.zero, on.one, on.back, 20);
  BreakPeers("");
}

}  // namespace
