// Threads that share a device, and what is left of them when they go: at any moment, by closing or by being terminated.
#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

constexpr uint32_t kOwner = 7;

uint32_t Reserve(Rig& rig, uint32_t owner) {
  return static_cast<uint32_t>(rig.channel->ReserveStream(nullptr, owner));
}

uint32_t StreamOf(Rig& rig, uint32_t owner) {
  const uint32_t stream = Reserve(rig, owner);
  rig.Submit(stream, protocol::StreamCreateRecord{});
  return stream;
}

/// A thread that leaves, and whether all of it has ended.
struct Leaving {
  explicit Leaving(Rig& rig, uint32_t owner = kOwner) {
    rig.channel->OwnerLeft(owner, [told = told] { told->fetch_add(1); });
  }
  [[nodiscard]] bool Ends() const {
    return Eventually([&] { return told->load() == 1; });
  }
  std::shared_ptr<std::atomic<int>> told = std::make_shared<std::atomic<int>>(0);
};

/// Nothing is left but so many streams and bytes.
bool Has(Rig& rig, uint32_t streams, uint64_t bytes) {
  const ChannelStats stats = rig.channel->Stats();
  return stats.streams == streams && stats.live_bytes == bytes && (bytes > 0 || stats.live_memory == 0);
}

MR_TEST(streams_that_come_and_go_have_few_slots_and_no_slot_twice_at_once) {
  RecordingBackend backend;
  Rig rig(backend);
  uint32_t highest = 0;
  uint32_t last = protocol::kMaxStreams;
  for (int n = 0; n < 1000; ++n) {
    const uint32_t stream = rig.Stream();
    MR_EXPECT(stream != last);  // It rests.
    highest = std::max(highest, stream);
    last = stream;
    MR_EXPECT(rig.Completes(stream, rig.Submit(stream, protocol::StreamDestroyRecord{})));
    MR_EXPECT(Eventually([&] { return Has(rig, 0, 0); }));
  }
  MR_EXPECT(highest < 100);
  std::set<uint32_t> all;
  for (uint32_t n = 0; n < protocol::kMaxStreams; ++n)
    all.insert(static_cast<uint32_t>(rig.channel->ReserveStream(nullptr)));
  MR_EXPECT_EQ(all.size(), protocol::kMaxStreams);
  MR_EXPECT_EQ(rig.channel->ReserveStream(nullptr), -1);
}

MR_TEST(memory_of_a_thread_that_left_is_freed_behind_all_of_its_streams) {
  RecordingBackend backend;
  backend.controls.completes_at_once = false;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  const uint32_t b = StreamOf(rig, kOwner);
  rig.Alloc(a, Handle(0), 100);
  const Ticket last = rig.Fill(b, Handle(0), 100);
  MR_EXPECT(rig.Logs("a1 2 fill"));
  rig.Backend(0).Complete(2);
  const Leaving leaving(rig);
  MR_EXPECT(rig.Parks(b, ParkReason::kDrain));
  MR_EXPECT(Has(rig, 1, 100));  // The other stream has ended.
  MR_EXPECT_EQ(leaving.told->load(), 0);
  backend.controls.completes_at_once = true;
  rig.Backend(1).Complete(last);
  MR_EXPECT(leaving.Ends());
  MR_EXPECT(Has(rig, 0, 0));
}

MR_TEST(memory_is_freed_when_the_last_stream_was_reserved_and_never_created) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  rig.Alloc(a, Handle(0), 100);
  MR_EXPECT(rig.Completes(a, rig.EventHandle(a, Handle(0))));
  Reserve(rig, kOwner);  // The thread is terminated before it submits STREAM_CREATE.
  MR_EXPECT(Leaving(rig).Ends());
  MR_EXPECT(Has(rig, 0, 0));
  MR_EXPECT_EQ(backend.controls.live_events.load(), 0);
}

MR_TEST(memory_is_freed_when_a_thread_had_closed_its_streams) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  rig.Alloc(a, Handle(0), 100);
  rig.Submit(a, protocol::StreamDestroyRecord{});
  MR_EXPECT(Eventually([&] { return Has(rig, 0, 100); }));
  MR_EXPECT(Leaving(rig).Ends());
  MR_EXPECT(Has(rig, 0, 0));
}

MR_TEST(memory_of_a_thread_without_streams_is_freed_when_a_slot_comes_back) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  rig.Alloc(a, Handle(0), 100);
  rig.Submit(a, protocol::StreamDestroyRecord{});
  MR_EXPECT(Eventually([&] { return Has(rig, 0, 100); }));
  for (uint32_t n = 0; n < protocol::kMaxStreams; ++n) rig.channel->ReserveStream(nullptr);
  const Leaving leaving(rig);
  // Calls of the channel run in order, so the first one is over when the second is.
  MR_EXPECT(Leaving(rig, kOwner + 1).Ends());
  MR_EXPECT_EQ(leaving.told->load(), 0);
  rig.Submit(0, protocol::StreamDestroyRecord{});
  MR_EXPECT(leaving.Ends());
  MR_EXPECT(Has(rig, protocol::kMaxStreams - 1, 0));
}

MR_TEST(a_thread_whose_memory_waits_for_a_slot_has_ended_when_the_device_closes) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  rig.Alloc(a, Handle(0), 100);
  rig.Submit(a, protocol::StreamDestroyRecord{});
  MR_EXPECT(Eventually([&] { return Has(rig, 0, 100); }));
  for (uint32_t n = 0; n < protocol::kMaxStreams; ++n) rig.channel->ReserveStream(nullptr);
  const Leaving leaving(rig);
  rig.channel->Close();
  MR_EXPECT(leaving.Ends());
}

MR_TEST(memory_is_freed_although_no_stream_can_be_created_for_it) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  rig.Alloc(a, Handle(0), 100);
  MR_EXPECT(rig.Completes(a, rig.Nop(a).ticket));
  backend.controls.refuse_streams = 1;
  Reserve(rig, kOwner);
  MR_EXPECT(Leaving(rig).Ends());
  MR_EXPECT(Has(rig, 0, 0));
}

MR_TEST(a_stream_that_could_not_be_created_frees_memory_of_others) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 100)));
  backend.controls.refuse_streams = 1;
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.Completes(b, rig.Free(b, Handle(0))));
  MR_EXPECT(Has(rig, 2, 0));
}

MR_TEST(memory_of_a_thread_that_left_is_freed_behind_the_copies_of_other_devices) {
  RecordingBackend backend;
  Rig rig(backend);
  Rig other(backend, 1);
  MR_EXPECT(other.channel->ProbePeer(rig.channel->id()).ok());
  const uint32_t a = StreamOf(rig, kOwner);
  const uint32_t b = StreamOf(other, kOwner);
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(0), 100)));
  MR_EXPECT(other.Completes(b, other.Alloc(b, Handle(0), 100)));
  backend.controls.completes_at_once = false;
  const Ticket copied = other.Copy(b, {other, Handle(0)}, {rig, Handle(0)}, 100);
  MR_EXPECT(other.Logs("b0 " + std::to_string(copied) + " copy b from a"));
  const Leaving leaving(rig);
  const auto position = [&](const std::string& what) {
    const std::vector<std::string> lines = rig.log->Lines();
    for (size_t n = 0; n < lines.size(); ++n) {
      if (lines[n].starts_with("a0 ") && lines[n].find(what) != std::string::npos) return static_cast<int>(n);
    }
    return -1;
  };
  MR_EXPECT(Eventually([&] { return position("free") >= 0; }));
  MR_EXPECT(position("wait b0 ") >= 0 && position("wait b0 ") < position("free"));
  backend.controls.completes_at_once = true;
  other.Backend(0).Complete(copied);
  rig.Backend(0).Complete(rig.channel->LastTicket(a) - 1);
  MR_EXPECT(leaving.Ends());
}

MR_TEST(a_thread_that_left_releases_its_holds) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  rig.Alloc(a, Handle(0), 100);
  rig.Hold(a);
  rig.Hold(a);
  MR_EXPECT(rig.Parks(a, ParkReason::kHold));
  MR_EXPECT(Leaving(rig).Ends());
  MR_EXPECT(Has(rig, 0, 0));
}

MR_TEST(an_adopted_handle_keeps_memory_of_a_thread_that_left) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  const uint32_t b = rig.Stream();
  rig.Hold(a);
  const Ticket allocated = rig.Alloc(a, Handle(0), 100);
  // The ADOPT waits for the ALLOC, which stands behind the hold that the end of the thread releases.
  const Ticket adopted = rig.Submit(b, protocol::AdoptRecord{.handle = Handle(1), .source = Handle(0), .bytes = 100});
  MR_EXPECT(rig.Parks(b, ParkReason::kPoint));
  MR_EXPECT(Leaving(rig).Ends());
  MR_EXPECT(rig.Completes(a, allocated) && rig.Completes(b, adopted));
  MR_EXPECT(rig.Failures(b).empty());
  MR_EXPECT(Has(rig, 1, 100));
  MR_EXPECT(rig.Completes(b, rig.Free(b, Handle(1))));
  MR_EXPECT(Has(rig, 1, 0));
}

MR_TEST(a_stream_takes_no_records_behind_its_end) {
  RecordingBackend backend;
  backend.controls.completes_at_once = false;
  Rig rig(backend);
  const uint32_t a = StreamOf(rig, kOwner);
  MR_EXPECT(rig.Logs("a0 1 nop"));
  const Leaving leaving(rig);
  MR_EXPECT(rig.Parks(a, ParkReason::kDrain));
  MR_EXPECT(rig.Nop(a).refused == StatusCode::kState);
  rig.Backend(0).Complete(1);
  MR_EXPECT(leaving.Ends());
}

}  // namespace
}  // namespace millrace::testing
