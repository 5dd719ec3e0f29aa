// Explores every order of the steps of a whole device, within a bound: owners, channels, the
// blocking-calls thread and the device. Runs native/runtime unchanged, on the explorer's atomics and locks.
#include "explorer/explored_test.h"
#include "explorer/manual_backend.h"
#include "explorer/sleeper.h"
#include "runtime/registry.h"

namespace explorer {
namespace {

using protocol::MemorySpace;

constexpr uint32_t kHandle = 1u << protocol::kHandleIndexBits;
/// A channel of a polled device with work polls it at this interval: a wait that took longer ended by a poll.
constexpr int64_t kHealthCheckNs = 5'000'000;

/// An open device with one stream.
struct Rig {
  explicit Rig(ManualBackend& backend)
      : timeline(std::make_shared<std::vector<protocol::TimelineSlot>>(1)), loop(std::make_shared<Sleeper>()) {
    auto opened = Registry::Instance().Open(
        backend, {.ordinal = 0, .timeline = *timeline, .max_pending = 1 << 10, .memory = timeline});
    MR_CHECK(opened.ok());
    channel = opened.value();
    device = backend.devices.back();
    stream = static_cast<uint32_t>(channel->ReserveStream(loop));
    Await(Submit(protocol::StreamCreateRecord{}));
  }
  ~Rig() {
    channel->Close();
    Registry::Instance().Remove(channel->id());
  }

  template <typename T>
  Ticket Submit(T record) {
    const protocol::RecordHeader header{static_cast<uint16_t>(T::kOpcode), 0, sizeof(T), stream, 0};
    std::memcpy(&record, &header, sizeof(header));
    return channel->Submit(std::as_bytes(std::span(&record, 1))).ticket;
  }
  Ticket Nop() { return Submit(protocol::NopRecord{}); }
  Ticket WaitFor(const Rig& other, Ticket ticket) {
    return Submit(protocol::WaitRecord{.device = other.channel->id(), .target = other.stream, .ticket = ticket});
  }
  [[nodiscard]] Ticket Completed() const { return channel->FindStream(stream)->Completed(); }
  /// Like Progress in src/core/waits: arms until the ticket is reached or never will be.
  void Await(Ticket ticket) const {
    while (Completed() < ticket && channel->LostStatus() == StatusCode::kOk) {
      if (channel->Arm(stream, ticket)) loop->Sleep();
    }
  }
  /// The device completes its work up to `last`.
  uint32_t SpawnDevice(Ticket last) {
    return Spawn("device", [this, last] {
      ManualStream& own = *device->streams[0];
      for (Ticket ended = own.Completed(); ended < last;) {
        const Ticket taken = own.taken();
        if (taken > ended) {
          own.Complete(ended = taken);
        } else {
          std::this_thread::yield();
        }
      }
    });
  }

  std::shared_ptr<std::vector<protocol::TimelineSlot>> timeline;
  std::shared_ptr<Sleeper> loop;
  std::shared_ptr<Channel> channel;
  ManualDevice* device = nullptr;
  uint32_t stream = 0;
};

MR_TEST(WhatIsSubmittedIsIssuedAndItsEndIsHeard) {
  ExpectNoneFails({.switches = 2, .delays = 1}, [] {
    ManualBackend backend({});
    Rig rig(backend);
    Window window;
    rig.Await(rig.Nop());
  });
}

MR_TEST(TheEndOfAnEarlierAndOfALaterRecordAreHeard) {
  ExpectNoneFails({.switches = 2, .delays = 0}, [] {
    ManualBackend backend({});
    Rig rig(backend);
    rig.device->streams[0]->Complete(1);
    backend.manner.completes_at_once = false;
    const Ticket first = rig.Nop();
    const Ticket second = rig.Nop();
    Window window;
    const uint32_t device = rig.SpawnDevice(second);
    if (rig.channel->Arm(rig.stream, second)) static_cast<void>(rig.channel->Arm(rig.stream, first));
    while (rig.Completed() < second) rig.loop->Sleep();
    Join(device);
  });
}

MR_TEST(AHoldGoesOnWheneverItIsLetGo) {
  ExpectNoneFails({.switches = 2, .delays = 0}, [] {
    ManualBackend backend({});
    Rig rig(backend);
    Window window;
    const Ticket held = rig.Submit(protocol::HoldRecord{});
    const uint32_t owner = Spawn("owner", [&] { rig.channel->ReleaseHold(rig.stream, held); });
    rig.Await(held);
    Join(owner);
  });
}

MR_TEST(AStreamParkedForAnotherDevicesPointGoesOn) {
  ExpectNoneFails({.switches = 2, .delays = 0}, [] {
    ManualBackend backend({});
    Rig first(backend);
    Rig second(backend);
    Window window;
    const uint32_t owner = Spawn("owner", [&] { first.Nop(); });
    // The record that it waits for comes before, while or after this one is issued.
    second.Await(second.WaitFor(first, 2));
    Join(owner);
  });
}

MR_TEST(WhoWaitsForAPolledDeviceIsWoken) {
  ExpectNoneFails({.switches = 1, .delays = 1}, [] {
    ManualBackend backend({.is_polled = true});
    Rig rig(backend);
    const int64_t since = NowNs();
    backend.manner.completes_at_once = false;
    {
      Window window;
      const Ticket ticket = rig.Nop();
      const uint32_t device = rig.SpawnDevice(ticket);
      rig.Await(ticket);
      Join(device);
    }
    Expect(NowNs() - since < kHealthCheckNs, "only the channel's own look at the device found the end");
    backend.manner.completes_at_once = true;
  });
}

// The channel lets go of a stream that ends while a thread already waits for the slot's next stream.
MR_TEST(TheNextStreamOfASlotIsWatchedToo) {
  ExpectNoneFails({.switches = 2, .delays = 0}, [] {
    ManualBackend backend({.is_polled = true});
    Rig rig(backend);
    const int64_t since = NowNs();
    {
      Window window;
      static_cast<void>(rig.channel->Arm(rig.stream, rig.Nop()));
      rig.Await(rig.Submit(protocol::StreamDestroyRecord{}));
      while (rig.channel->ReserveStream(rig.loop) != rig.stream) std::this_thread::yield();
      static_cast<void>(rig.Submit(protocol::StreamCreateRecord{}));
      rig.Await(rig.Nop());
    }
    Expect(NowNs() - since < kHealthCheckNs, "only the channel's own look at the device found the end");
  });
}

MR_TEST(ACopyByTheBlockingCallsThreadEndsAndWakesItsStream) {
  ExpectNoneFails({.switches = 2, .delays = 0}, [] {
    ManualBackend backend({});
    Rig rig(backend);
    std::array<std::byte, 8> host{};
    rig.Await(rig.Submit(protocol::AllocRecord{.handle = kHandle, .kind = 0, .bytes = 8}));
    static_cast<void>(rig.channel->RegisterHost(kHandle, host, false));
    Window window;
    rig.Await(rig.Submit(protocol::CopyRecord{.dst_handle = kHandle,
                                              .src_handle = kHandle,
                                              .dst_space = static_cast<uint16_t>(MemorySpace::kDevice),
                                              .src_space = static_cast<uint16_t>(MemorySpace::kHost),
                                              .dst_device = rig.channel->id(),
                                              .src_device = rig.channel->id(),
                                              .bytes = 8}));
  });
}

// Records accepted before the end complete; later ones are rejected. No thread waits forever.
MR_TEST(SubmittingAndClosingMeet) {
  ExpectNoneFails({.switches = 2, .delays = 0}, [] {
    ManualBackend backend({});
    Rig rig(backend);
    Window window;
    const uint32_t closing = Spawn("closing", [&] { rig.channel->Close(); });
    const Ticket ticket = rig.Nop();
    if (ticket != 0) rig.Await(ticket);
    Join(closing);
    Expect(rig.Completed() >= ticket, "an accepted record was dropped");
  });
}

// Closing does not wait for a device that is lost while it drains.
MR_TEST(ADeviceIsLostWhileItCloses) {
  for (const bool is_polled : {false, true}) {
    ExpectNoneFails({.switches = 2, .delays = 0}, [is_polled] {
      ManualBackend backend({.is_polled = is_polled});
      Rig rig(backend);
      backend.manner.completes_at_once = false;
      const Ticket never = rig.Nop();
      const int64_t since = NowNs();
      {
        Window window;
        const uint32_t closing = Spawn("closing", [&] { rig.channel->Close(); });
        const uint32_t losing =
            Spawn("losing", [&] { rig.channel->MarkLost(Status(StatusCode::kDeviceLost, "the scenario ended it")); });
        rig.Await(never);
        Join(closing);
        Join(losing);
      }
      Expect(NowNs() - since < kHealthCheckNs, "only the channel's own look at the device ended it");
    });
  }
}

MR_TEST(ADeviceIsAbandonedWhileAnOwnerWaits) {
  ExpectNoneFails({.switches = 2, .delays = 0}, [] {
    ManualBackend backend({});
    Rig rig(backend);
    backend.manner.completes_at_once = false;
    Window window;
    const uint32_t ending = Spawn("ending", [&] { rig.channel->Abandon(std::chrono::milliseconds(1)); });
    const Ticket ticket = rig.Nop();
    // Accepted work completes at some point, also after the channel has destroyed its streams.
    const uint32_t device = Spawn("device", [&] {
      for (int n = 0; n < 3; ++n) std::this_thread::yield();
      std::atomic_ref((*rig.timeline)[rig.stream].device_word).store(ticket, std::memory_order_release);
      rig.channel->FindStream(rig.stream)->Progress(ticket);
    });
    if (ticket != 0) rig.Await(ticket);
    Join(device);
    Join(ending);
  });
}

}  // namespace
}  // namespace explorer

MR_TEST_MAIN()
