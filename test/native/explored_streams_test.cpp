// Explores every order of the steps of two or three threads in a timeline slot that request wakes, complete and
// release. Runs native/runtime/stream_state.cpp on the explorer's atomics and locks.
#include "explorer/explored_test.h"
#include "explorer/sleeper.h"
#include "no_kernel_failures.h"
#include "runtime/doorbell.h"
#include "runtime/quick_mutex.h"
#include "runtime/remote/shared_block.h"
#include "runtime/stream_state.h"

namespace explorer {
namespace {

struct Slot {
  protocol::TimelineSlot words{};
  NoKernelFailures kernel_failures;
  Recorder recorder;
  StreamState stream{0, words, kernel_failures, recorder};
  std::shared_ptr<Sleeper> owner = std::make_shared<Sleeper>();
  Slot() { stream.SetOwner(owner); }
  void Reach(Ticket ticket) {
    std::atomic_ref(words.device_word).store(ticket, std::memory_order_release);
    stream.Progress(ticket);
  }
  /// As an owner that armed `ticket` and relies on the ring.
  void AwaitArmed(Ticket ticket) {
    while (stream.Completed() < ticket) owner->Sleep();
  }
};

// The later ticket is armed; an earlier one completes meanwhile.
MR_TEST(ALaterTicketStaysArmedWhileAnEarlierOneCompletes) {
  ExpectNoneFails({.switches = 4, .delays = 2}, [] {
    Slot slot;
    const bool is_armed = slot.stream.ArmOwner(2);
    Window window;
    const uint32_t device = Spawn("device", [&] {
      slot.Reach(1);
      slot.Reach(2);
    });
    static_cast<void>(slot.stream.ArmOwner(1));
    if (is_armed) slot.AwaitArmed(2);
    Join(device);
  });
}

MR_TEST(EveryTicketThatWasArmedRings) {
  ExpectNoneFails({.switches = 3, .delays = 2}, [] {
    Slot slot;
    Window window;
    const uint32_t device = Spawn("device", [&] {
      slot.Reach(1);
      slot.Reach(2);
    });
    if (slot.stream.ArmOwner(1)) slot.AwaitArmed(1);
    if (slot.stream.ArmOwner(2)) slot.AwaitArmed(2);
    Join(device);
  });
}

// The channel completes records on the host that it could not issue, concurrently with the device.
MR_TEST(TwoThreadsMayCompleteAtOnce) {
  ExpectNoneFails({.switches = 3, .delays = 1}, [] {
    Slot slot;
    Window window;
    const uint32_t device = Spawn("device", [&] { slot.Reach(1); });
    const uint32_t channel = Spawn("channel", [&] { slot.stream.CompleteOnHost(2); });
    if (slot.stream.ArmOwner(2)) slot.AwaitArmed(2);
    Join(device);
    Join(channel);
  });
}

// Parking: a channel waits for the issue of one ticket and the completion of another of the same stream.
MR_TEST(AChannelIsWokenForWhatItWaitsFor) {
  ExpectNoneFails({.switches = 3, .delays = 2}, [] {
    Slot slot;
    const auto other = std::make_shared<Sleeper>();
    Window window;
    const uint32_t channel = Spawn("channel", [&] {
      slot.stream.MarkIssued(1);
      slot.Reach(1);
    });
    while (slot.stream.Issued() < 1 && slot.stream.AddWaiter(1, false, other, 3)) other->Sleep();
    while (slot.stream.Completed() < 1 && slot.stream.AddWaiter(1, true, other, 3)) other->Sleep();
    Join(channel);
    Expect(slot.stream.WaiterCount() == 0, "somebody still waits for what was reached");
  });
}

MR_TEST(TwoChannelsAndTheOwnerAreAllWoken) {
  ExpectNoneFails({.switches = 2, .delays = 1}, [] {
    Slot slot;
    Window window;
    const auto wait = [&] {
      const auto self = std::make_shared<Sleeper>();
      while (slot.stream.Completed() < 1 && slot.stream.AddWaiter(1, true, self, 3)) self->Sleep();
    };
    const uint32_t first = Spawn("first", wait);
    const uint32_t second = Spawn("second", wait);
    const uint32_t device = Spawn("device", [&] { slot.Reach(1); });
    if (slot.stream.ArmOwner(1)) slot.AwaitArmed(1);
    for (const uint32_t thread : {first, second, device}) Join(thread);
  });
}

// A hold is released before, while and after the channel checks it.
MR_TEST(AHoldThatIsLetGoGoesOn) {
  ExpectNoneFails({.switches = 4, .delays = 2}, [] {
    Slot slot;
    const auto channel = std::make_shared<Sleeper>();
    Window window;
    const uint32_t owner = Spawn("owner", [&] {
      slot.stream.ReleaseHold(1);
      channel->WakeStream(0);
    });
    while (!slot.stream.TakeRelease(1)) channel->Sleep();
    slot.stream.MarkIssued(1);
    Join(owner);
  });
}

// A lost device wakes all earlier waiters; later ones see the loss.
MR_TEST(WakeAllReachesEarlierWaiters) {
  ExpectNoneFails({.switches = 4, .delays = 2}, [] {
    Slot slot;
    std::atomic<bool> is_lost{false};
    Window window;
    const uint32_t device = Spawn("device", [&] {
      is_lost.store(true, std::memory_order_release);
      slot.stream.WakeAll();
    });
    // As Channel::Arm does.
    if (slot.stream.ArmOwner(1) && !is_lost.load(std::memory_order_acquire)) slot.owner->Sleep();
    Join(device);
  });
}

MR_TEST(ABellWakesAThreadThatGoesToSleep) {
  ExpectNoneFails({.switches = 4, .delays = 3}, [] {
    Bell bell;
    std::atomic<int> work{0};
    Window window;
    const auto give = [&] {
      work.fetch_add(1, std::memory_order_relaxed);
      bell.Ring();
    };
    const uint32_t first = Spawn("first", give);
    const uint32_t second = Spawn("second", give);
    for (int seen = 0; seen < 2; seen = work.load(std::memory_order_acquire)) {
      bell.Sleep([&] { return work.load(std::memory_order_acquire) != seen; });
    }
    Join(first);
    Join(second);
  });
}

// One rings as the owner of a device in another process does.
MR_TEST(ASharedBellWakesAThreadThatGoesToSleep) {
  ExpectNoneFails({.switches = 4, .delays = 3}, [] {
    Bell bell;
    std::atomic<uint32_t> word{0};
    bell.Share(word);
    std::atomic<int> work{0};
    Window window;
    const uint32_t inside = Spawn("inside", [&] {
      work.fetch_add(1, std::memory_order_relaxed);
      bell.Ring();
    });
    const uint32_t outside = Spawn("outside", [&] {
      work.fetch_add(1, std::memory_order_relaxed);
      remote::RingIfSleeping(word);
    });
    for (int seen = 0; seen < 2; seen = work.load(std::memory_order_acquire)) {
      bell.Sleep([&] { return work.load(std::memory_order_acquire) != seen; });
    }
    Join(inside);
    Join(outside);
  });
}

// Each holds it for some steps. So others find it held, and must be woken.
MR_TEST(AQuickMutexAdmitsOneThreadAndWakesTheOthers) {
  ExpectNoneFails({.switches = 4, .delays = 2}, [] {
    QuickMutex lock;
    std::atomic<int> inside{0};
    Window window;
    const auto enter = [&] {
      std::lock_guard guard(lock);
      Expect(inside.fetch_add(1, std::memory_order_relaxed) == 0, "two threads hold it");
      inside.fetch_sub(1, std::memory_order_relaxed);
    };
    const uint32_t first = Spawn("first", enter);
    const uint32_t second = Spawn("second", enter);
    enter();
    Join(first);
    Join(second);
  });
}

// ── The explorer itself ──

/// Each side stores, then loads the other's value: with a fence in between, at least one sees the other's store.
Report MeetBehind(bool has_fence) {
  return Explore({.switches = 2, .delays = 2}, [has_fence] {
    std::atomic<int> mine{0};
    std::atomic<int> theirs{0};
    int seen[2] = {};
    Window window;
    const uint32_t other = Spawn("other", [&] {
      theirs.store(1, std::memory_order_release);
      if (has_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
      seen[1] = mine.load(std::memory_order_acquire);
    });
    mine.store(1, std::memory_order_release);
    if (has_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
    seen[0] = theirs.load(std::memory_order_acquire);
    Join(other);
    Expect(seen[0] == 1 || seen[1] == 1, "neither saw the other");
  });
}

MR_TEST(TheExplorerFindsAMissingFence) {
  MR_EXPECT(MeetBehind(true).failure.empty());
  MR_EXPECT(MeetBehind(false).failure.starts_with("neither saw the other"));
}

MR_TEST(TheExplorerFindsALostWake) {
  const Report report = Explore({}, [] {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_set = false;
    Window window;
    const uint32_t other = Spawn("other", [&] {
      std::lock_guard lock(mutex);
      is_set = true;
      changed.notify_all();
    });
    bool was_set;
    {
      std::lock_guard lock(mutex);
      was_set = is_set;
    }
    // The other thread may notify exactly here.
    std::unique_lock lock(mutex);
    if (!was_set) changed.wait(lock);
    lock.unlock();
    Join(other);
  });
  MR_EXPECT(report.failure.starts_with("every thread waits"));
}

}  // namespace
}  // namespace explorer

MR_TEST_MAIN()
