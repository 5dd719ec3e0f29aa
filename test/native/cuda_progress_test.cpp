// The progress of a CUDA stream, and its sources (native/hal/hal.h; rules are cited by number): on the fake driver or
// on this machine's (see cuda_backend_test.cpp).
#include <thread>

#include "cuda/copies_in_flight.h"
#include "cuda/stream.h"
#include "cuda_fixture.h"
#include "hal/graph.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

// Rules 3 and 4: interior tickets are visible before slower later work ends, through the host's word alone.
MR_TEST(ResolveFindsInteriorTickets) {
  Opened opened(0);
  auto stream = opened.NewStream(1);
  Gate gate(opened);
  for (Ticket ticket = 41; ticket <= 60; ++ticket) MR_REQUIRE(stream->Nop(ticket).ok());
  MR_REQUIRE(gate.Launch(*stream, 61).ok());
  for (Ticket ticket = 62; ticket <= 80; ++ticket) MR_REQUIRE(stream->Nop(ticket).ok());

  MR_EXPECT(Finish(*stream, 60));
  auto behind = stream->Resolve(80);
  MR_REQUIRE(behind.ok());
  MR_EXPECT_EQ(behind.value(), 60u);
  MR_EXPECT_EQ(opened.slots[1].device_word, 0u);
  MR_EXPECT_EQ(opened.slots[1].host_word, 60u);
  // A query for a ticket that is known to be complete advances the stream no further.
  MR_EXPECT_EQ(stream->Resolve(3).value(), 60u);
  gate.Open();
  MR_EXPECT(Finish(*stream, 70));
  MR_EXPECT(Finish(*stream, 80));
  MR_EXPECT_EQ(opened.slots[1].host_word, 80u);
}

// Single records after a stalled stream are signalled one by one; the driver's launch queue must not fill.
MR_TEST(WordsOnTheirWayAreBounded) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Gate gate(opened);
  MR_REQUIRE(gate.Launch(*stream, 1).ok());
  constexpr Ticket kLast = 400;
  if (OnFake()) FailCalls("cuStreamWriteValue64:65:1");
  for (Ticket ticket = 2; ticket <= kLast; ++ticket) {
    MR_REQUIRE(stream->Nop(ticket).ok());
    MR_REQUIRE(stream->Signal().ok());
  }
  if (OnFake()) FailCalls("");
  gate.Open();
  MR_EXPECT(Finish(*stream, kLast));
  MR_REQUIRE(stream->Signal().ok());
  MR_EXPECT(Eventually([&] { return std::atomic_ref(opened.slots[0].device_word).load() == kLast; }));
}

// After a long wait for a later ticket, tickets that no thread asked about are reported too, also if the later ticket's
// word is in flight.
MR_TEST(ALongWaitTellsHowFarTheStreamCame) {
  for (const bool is_signalled : {false, true}) {
    for (const Ticket before : {0, 1, 2, 7, 30, 31}) {
      Opened opened(0);
      auto stream = opened.NewStream(0);
      Gate gate(opened);
      constexpr Ticket kLast = 32;
      for (Ticket ticket = 1; ticket <= kLast; ++ticket) {
        MR_REQUIRE((ticket == before + 1 ? gate.Launch(*stream, ticket) : stream->Nop(ticket)).ok());
      }
      if (is_signalled) MR_REQUIRE(stream->Signal().ok());
      Ticket seen = 0;
      MR_EXPECT(Eventually([&] {
        seen = stream->Resolve(kLast).value();
        return seen >= before;
      }));
      MR_EXPECT_EQ(seen, before);
      MR_EXPECT_EQ(std::atomic_ref(opened.slots[0].host_word).load(), before);
      gate.Open();
      MR_EXPECT(Finish(*stream, kLast));
    }
  }
}

MR_TEST(SignalMakesTheStreamWriteItsWord) {
  Opened opened(0);
  auto stream = opened.NewStream(2);
  Gate gate(opened);
  MR_EXPECT(stream->Signal().ok());
  MR_REQUIRE(gate.Launch(*stream, 1).ok());
  MR_REQUIRE(stream->Nop(2).ok());
  MR_EXPECT(stream->Signal().ok());
  MR_EXPECT(stream->Signal().ok());
  MR_EXPECT_EQ(stream->Completed(), 0u);
  gate.Open();
  MR_EXPECT(Eventually([&] { return stream->Completed() == 2; }));
  MR_EXPECT_EQ(std::atomic_ref(opened.slots[2].device_word).load(), 2u);
  MR_EXPECT_EQ(opened.slots[2].host_word, 0u);
}

/// A stream that allocated memory, and whose copy to it (ticket 3) waits until the gate is opened.
struct CopyBehindGate {
  CopyBehindGate(Opened& opened, uint64_t bytes)
      : host(*opened.device, bytes), stream(opened.NewStream(0)), gate(opened) {
    auto allocated = stream->Allocate(1, bytes);
    MR_CHECK(allocated.ok());
    memory = std::move(allocated).value();
    MR_CHECK(gate.Launch(*stream, 2).ok());
    MR_CHECK(stream->Copy(3, memory->address(), host.data, bytes).ok());
  }
  [[nodiscard]] bool Free() { return stream->Free(4, std::move(memory)).ok() && Finish(*stream, 4); }
  Pinned host;
  std::unique_ptr<hal::Stream> stream;
  Gate gate;
  std::unique_ptr<hal::Memory> memory;
};

// A word would hold up the copy. What has completed is told all the same, for those that only read.
MR_TEST(NoWordIsWrittenBesideALargeCopyOfAnotherStream) {
  Opened opened(0);
  CopyBehindGate copy(opened, uint64_t{1} << 20);
  auto other = opened.NewStream(1);
  for (Ticket ticket = 1; ticket <= 3; ++ticket) MR_REQUIRE(other->Nop(ticket).ok());
  MR_EXPECT(Eventually([&] { return other->Signal().ok() && other->Query().ok() && other->Completed() == 3; }));
  MR_EXPECT_EQ(std::atomic_ref(opened.slots[1].device_word).load(), 0u);
  MR_EXPECT_EQ(std::atomic_ref(opened.slots[1].host_word).load(), 3u);

  // The stream of the only copy writes its own, as long as the copy is not so large that a word saves nothing.
  MR_REQUIRE(copy.stream->Signal().ok());
  copy.gate.Open();
  MR_EXPECT(Eventually([&] { return std::atomic_ref(opened.slots[0].device_word).load() == 3; }));
  MR_REQUIRE(other->Nop(4).ok());
  MR_REQUIRE(other->Signal().ok());
  MR_EXPECT(Eventually([&] { return std::atomic_ref(opened.slots[1].device_word).load() == 4; }));
  MR_EXPECT(copy.Free());
}

MR_TEST(NoWordIsWrittenBesideTheCopiesOfAGraph) {
  Opened opened(0);
  constexpr uint64_t kHalf = uint64_t{1} << 16;
  Pinned host(*opened.device, kHalf);
  auto stream = opened.NewStream(0);
  auto memory = stream->Allocate(1, kHalf);
  MR_REQUIRE(memory.ok());
  std::vector<hal::GraphNode> nodes;
  nodes.push_back({.device = opened.device.get(),
                   .work = hal::GraphCopy{.dst = memory.value()->address(), .src = host.data, .bytes = kHalf}});
  auto graph = opened.device->BuildGraph(std::move(nodes));
  MR_REQUIRE(graph.ok());
  Gate gate(opened);
  MR_REQUIRE(gate.Launch(*stream, 2).ok());
  MR_REQUIRE(stream->LaunchGraph(3, {.graph = graph.value().get()}).ok());
  auto other = opened.NewStream(1);
  MR_REQUIRE(other->Nop(1).ok());
  MR_EXPECT(Eventually([&] { return other->Signal().ok() && other->Query().ok() && other->Completed() == 1; }));
  MR_EXPECT_EQ(std::atomic_ref(opened.slots[1].device_word).load(), 0u);
  gate.Open();
  MR_EXPECT(stream->Free(4, std::move(memory).value()).ok() && Finish(*stream, 4));
}

MR_TEST(NoWordIsWrittenBesideACopyOfPageableMemory) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  const auto& one = static_cast<cuda::Stream&>(*stream);
  cuda::CopiesInFlight copies;
  {
    const cuda::CopiesInFlight::Unqueued small(copies, 1000);
    MR_EXPECT(!copies.KeepWordsAway(one));
    const cuda::CopiesInFlight::Unqueued large(copies, uint64_t{1} << 20);
    MR_EXPECT(copies.KeepWordsAway(one) && copies.AreSeveral());
  }
  MR_EXPECT(!copies.KeepWordsAway(one) && !copies.AreSeveral());
}

MR_TEST(NoWordIsWrittenBehindAVeryLargeCopyOfItsStream) {
  Opened opened(0);
  CopyBehindGate copy(opened, uint64_t{4} << 20);
  MR_REQUIRE(copy.stream->Signal().ok());
  copy.gate.Open();
  MR_EXPECT(Finish(*copy.stream, 3));
  MR_EXPECT_EQ(std::atomic_ref(opened.slots[0].device_word).load(), 0u);
  MR_EXPECT(copy.Free());
}

// Rule 4, with another channel's queries concurrent to the calls of the own one.
MR_TEST(ProgressOnlyGrowsWhileAnotherThreadAsks) {
  Opened opened(0);
  auto stream = opened.NewStream(3);
  constexpr Ticket kLast = 4000;
  std::atomic<Ticket> issued{0};
  std::atomic<int> wrong{0};
  std::thread other([&] {
    for (Ticket seen = 0; seen < kLast;) {
      const Ticket limit = issued.load(std::memory_order_acquire);
      auto resolved = stream->Resolve(limit);
      if (!resolved.ok() || resolved.value() < seen || resolved.value() > issued.load()) {
        ++wrong;
        return;
      }
      seen = resolved.value();
    }
  });
  for (Ticket ticket = 1; ticket <= kLast && wrong.load() == 0; ++ticket) {
    while (ticket > stream->Completed() + protocol::kStreamWindow) std::this_thread::yield();
    // Published before the call: others may only ask about tickets, never learn of one too early.
    issued.store(ticket, std::memory_order_release);
    if (!stream->Nop(ticket).ok()) ++wrong;
    if (ticket % protocol::kTimelineWriteEvery == 0 && !stream->Signal().ok()) ++wrong;
  }
  other.join();
  MR_EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
