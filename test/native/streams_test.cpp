// A single timeline slot: which wake requests are pending, and who is rung. explored_streams_test.cpp explores all
// interleavings of two threads.
#include "runtime/stream_state.h"

#include <memory>

#include "no_kernel_failures.h"
#include "testing.h"

namespace millrace {
namespace {

struct CountingOwner final : WakeTarget {
  int rings = 0;
  void Ring() noexcept override { ++rings; }
};

struct CountingChannel final : StreamWaker {
  std::vector<uint32_t> woken;
  void WakeStream(uint32_t stream) noexcept override { woken.push_back(stream); }
};

struct Slot {
  protocol::TimelineSlot words{};
  NoKernelFailures kernel_failures;
  Recorder recorder;
  StreamState stream{0, words, kernel_failures, recorder};
  std::shared_ptr<CountingOwner> owner = std::make_shared<CountingOwner>();
  Slot() { stream.SetOwner(owner); }
  /// The device writes its word, without a notification.
  void Write(Ticket ticket) { std::atomic_ref(words.device_word).store(ticket); }
  void Reach(Ticket ticket) {
    Write(ticket);
    stream.Progress(ticket);
  }
};

MR_TEST(ArmingAReachedTicketKeepsTheWakeForALaterOne) {
  Slot slot;
  MR_EXPECT(slot.stream.ArmOwner(5));
  slot.Write(3);
  MR_EXPECT(!slot.stream.ArmOwner(3));
  MR_EXPECT_EQ(slot.stream.Wanted(), Ticket{5});
  slot.Reach(5);
  MR_EXPECT_EQ(slot.owner->rings, 1);
  MR_EXPECT_EQ(slot.stream.Wanted(), Ticket{0});
}

MR_TEST(EveryArmedTicketIsRungForInWhateverOrderTheyWereArmed) {
  for (const auto& [first, second] : {std::pair<Ticket, Ticket>{3, 5}, {5, 3}}) {
    Slot slot;
    MR_EXPECT(slot.stream.ArmOwner(first));
    MR_EXPECT(slot.stream.ArmOwner(second));
    MR_EXPECT_EQ(slot.stream.Wanted(), Ticket{3});
    slot.Reach(3);
    MR_EXPECT_EQ(slot.owner->rings, 1);
    MR_EXPECT_EQ(slot.stream.Wanted(), Ticket{5});
    slot.Reach(5);
    MR_EXPECT_EQ(slot.owner->rings, 2);
  }
}

MR_TEST(ATicketArmedTwiceIsRungForOnce) {
  Slot slot;
  MR_EXPECT(slot.stream.ArmOwner(4));
  MR_EXPECT(slot.stream.ArmOwner(4));
  slot.Reach(4);
  slot.stream.Progress(4);
  MR_EXPECT_EQ(slot.owner->rings, 1);
  MR_EXPECT(!slot.stream.ArmOwner(4));
}

MR_TEST(ALaterTicketCanBeArmedWhileAnEarlierOneWasReachedAndNobodyWasTold) {
  Slot slot;
  MR_EXPECT(slot.stream.ArmOwner(3));
  slot.Write(3);
  MR_EXPECT(slot.stream.ArmOwner(5));
  slot.stream.Progress(3);
  slot.Reach(5);
  MR_EXPECT_EQ(slot.owner->rings, 2);
}

MR_TEST(ChannelsAndTheOwnerAreToldApart) {
  Slot slot;
  const auto channel = std::make_shared<CountingChannel>();
  MR_EXPECT(slot.stream.ArmOwner(3));
  MR_EXPECT(slot.stream.AddWaiter(3, true, channel, 7));
  MR_EXPECT(slot.stream.AddWaiter(3, false, channel, 8));
  slot.stream.MarkIssued(3);
  MR_EXPECT(channel->woken == std::vector<uint32_t>{8});
  MR_EXPECT_EQ(slot.owner->rings, 0);
  slot.Reach(3);
  MR_EXPECT((channel->woken == std::vector<uint32_t>{8, 7}));
  MR_EXPECT_EQ(slot.owner->rings, 1);
}

MR_TEST(WakingAllRingsTheOwnerWhetherHeAskedOrNot) {
  Slot slot;
  slot.stream.WakeAll();
  MR_EXPECT_EQ(slot.owner->rings, 1);
  MR_EXPECT(slot.stream.ArmOwner(3));
  slot.stream.WakeAll();
  MR_EXPECT(slot.owner->rings >= 2);
  MR_EXPECT_EQ(slot.stream.Wanted(), Ticket{0});
}

}  // namespace
}  // namespace millrace
