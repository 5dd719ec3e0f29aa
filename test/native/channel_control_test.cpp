// Calls of control threads to a device besides its channel, and the counts that a channel keeps.
#include <array>
#include <thread>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

using protocol::AllocKind;
using protocol::PeerWhat;

MR_TEST(the_pool_and_peers_are_asked_on_an_open_device_only) {
  RecordingBackend backend;
  Rig rig(backend);
  const auto used = [&] { return rig.channel->WithDevice([](hal::Device& device) { return device.PoolUse(); }); };
  const auto peer = [&] {
    return rig.channel->WithDevice([](hal::Device& device) { return device.Peer(1, PeerWhat::kPool); });
  };
  const auto trim = [&] { return rig.channel->WithDevice([](hal::Device& device) { return device.Trim(0); }); };
  MR_EXPECT(used().ok() && used().value().used == 10);
  MR_EXPECT(peer().ok() && peer().value().can_grant && !peer().value().is_granted);
  MR_EXPECT(trim().ok());
  rig.channel->Close();
  MR_EXPECT(used().status().code() == StatusCode::kState);
  MR_EXPECT(peer().status().code() == StatusCode::kState);
  MR_EXPECT(trim().code() == StatusCode::kState);
  std::array<std::byte, 16> host{};
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, true).code() == StatusCode::kState);
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).status().code() == StatusCode::kState);
}

MR_TEST(a_channel_counts_staging_and_page_locked_memory) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 100);
  rig.Alloc(a, Handle(1), 30, AllocKind::kStaging);
  MR_EXPECT(rig.Completes(a, rig.Nop(a).ticket));
  MR_EXPECT_EQ(rig.channel->Stats().live_bytes, 130u);
  MR_EXPECT_EQ(rig.channel->Stats().staging_bytes, 30u);
  rig.Free(a, Handle(1));
  MR_EXPECT(rig.Completes(a, rig.Free(a, Handle(0))));
  MR_EXPECT_EQ(rig.channel->Stats().staging_bytes, 0u);
  std::array<std::byte, 16> host{};
  std::array<std::byte, 8> other{};
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, true).ok());
  MR_EXPECT(rig.channel->RegisterHost(Handle(1), other, false).ok());
  MR_EXPECT_EQ(rig.channel->Stats().pinned_bytes, 16u);
  MR_EXPECT(rig.channel->UnregisterHost(Handle(1)).ok());
  MR_EXPECT_EQ(rig.channel->Stats().pinned_bytes, 16u);
  MR_EXPECT(rig.channel->UnregisterHost(Handle(0)).ok());
  MR_EXPECT(rig.channel->UnregisterHost(Handle(0)).ok());  // The handle is not bound any more.
  MR_EXPECT_EQ(rig.channel->Stats().pinned_bytes, 0u);
  const Ticket strange = rig.Alloc(a, Handle(2), 8, static_cast<AllocKind>(3));
  MR_EXPECT(rig.Completes(a, strange));
  MR_EXPECT(rig.Failures(a).at(0).status.code() == StatusCode::kInternal);
}

MR_TEST(an_address_is_known_while_memory_is_there) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(!rig.channel->MemoryAddress(Handle(0)));
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 0)));
  MR_EXPECT(rig.channel->MemoryAddress(Handle(0)).value_or(0) != 0);
  MR_EXPECT(!rig.channel->MemoryAddress(Handle(0, 2)));
  MR_EXPECT(rig.Completes(a, rig.Free(a, Handle(0))));
  MR_EXPECT(!rig.channel->MemoryAddress(Handle(0)));
  backend.controls.free_bytes = 8;
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(1), 16)));
  MR_EXPECT(!rig.channel->MemoryAddress(Handle(1)));
}

MR_TEST(addresses_are_asked_while_memory_comes_and_goes) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> seen{0};
  std::thread asking([&] {
    while (!is_over.load()) {
      for (uint32_t n = 0; n < 8; ++n) seen += rig.channel->MemoryAddress(Handle(n)).value_or(0) != 0 ? 1 : 0;
    }
  });
  for (int round = 0; round < 500; ++round) {
    for (uint32_t n = 0; n < 8; ++n) rig.Alloc(a, Handle(n), 16);
    for (uint32_t n = 0; n < 8; ++n) rig.Free(a, Handle(n));
  }
  MR_EXPECT(rig.Completes(a, rig.channel->LastTicket(a)));
  is_over = true;
  asking.join();
  MR_EXPECT(rig.Failures(a).empty());
}

MR_TEST(memory_of_another_process_is_waited_for_and_freed_in_order) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 16, AllocKind::kInterprocess)));
  auto exported = rig.channel->ExportMemory(Handle(0));
  MR_REQUIRE(exported.ok());
  MR_EXPECT(rig.channel->ExportMemory(Handle(9)).status().code() == StatusCode::kState);
  const Ticket filled = rig.Fill(a, Handle(1), 16);
  MR_EXPECT(rig.Parks(a, ParkReason::kPoint));
  MR_EXPECT(rig.channel->OpenMemory(Handle(1), exported.value(), 16).ok());
  MR_EXPECT(rig.Completes(a, filled));
  MR_EXPECT_EQ(rig.channel->Stats().live_bytes, 32u);
  MR_EXPECT(rig.Completes(a, rig.Free(a, Handle(1))));
  MR_EXPECT_EQ(rig.channel->Stats().live_bytes, 16u);
  MR_EXPECT(rig.Failures(a).empty());
  // A failed open fails the records that wait for it, and is freed like memory that could not be allocated.
  const Ticket late = rig.Fill(a, Handle(2), 16);
  MR_EXPECT(rig.Parks(a, ParkReason::kPoint));
  MR_EXPECT(rig.channel->OpenMemory(Handle(2), {}, 16).code() == StatusCode::kArgument);
  // A handle names only one object.
  MR_EXPECT(rig.channel->OpenMemory(Handle(0), exported.value(), 16).code() == StatusCode::kArgument);
  MR_EXPECT(rig.Completes(a, rig.Free(a, Handle(2))));
  const auto failures = rig.Failures(a);
  MR_EXPECT(failures.size() == 1 && failures[0].first == late && failures[0].status.code() == StatusCode::kUpstream);
}

MR_TEST(a_device_does_not_close_while_its_control_thread_asks_it) {
  RecordingBackend backend;
  RecordingEventHandle marked(backend.controls, protocol::EventKind::kInterprocess);
  Rig rig(backend);
  backend.controls.blocking_calls.is_shut = true;
  auto memory = rig.device->ExportMemory(RecordingMemory(16));
  auto event_handle = rig.device->ExportEvent(marked);
  // The opened objects arrive too late to be bound, and the calls report that.
  std::thread asking(
      [&] { MR_EXPECT(rig.channel->OpenMemory(Handle(0), memory.value(), 16).code() == StatusCode::kState); });
  std::thread marking(
      [&] { MR_EXPECT(rig.channel->OpenEvent(Handle(0), event_handle.value()).code() == StatusCode::kState); });
  MR_EXPECT(Eventually([&] { return backend.controls.blocking_calls.waiting.load() == 2; }));
  std::thread closing([&] { rig.channel->Close(); });
  MR_EXPECT(Eventually([&] { return rig.channel->LostStatus() != StatusCode::kOk; }));
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  MR_EXPECT(backend.controls.log.Find("closes a") == -1);
  backend.controls.blocking_calls.is_shut = false;
  asking.join();
  marking.join();
  closing.join();
}

}  // namespace
}  // namespace millrace::testing
