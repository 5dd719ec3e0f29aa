// When a write clears the poison of an earlier failure: before its work can complete, because a waiting record on any
// channel checks right then.
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

using protocol::Access;

constexpr uint64_t kPoisonedBytes = 16;

/// Two devices. The second copies handle 0 from the first during a call of the first one's backend, after the submitted
/// work has completed and before the call returns.
struct Meeting {
  Meeting() : first(Listen(), 0), second(backend, 1) {
    a = first.Stream();
    b = second.Stream();
    for (const uint32_t n : {0u, 1u}) {
      first.Alloc(a, Handle(n), kPoisonedBytes);
      second.Alloc(b, Handle(n), kPoisonedBytes);
    }
    MR_EXPECT(first.channel->InstallKernel(Handle(0), {}).ok());
    MR_EXPECT(first.channel->RegisterHost(Handle(0), host, false).ok());
    MR_EXPECT(first.channel->ProbePeer(second.channel->id()).ok());
    MR_EXPECT(second.channel->ProbePeer(first.channel->id()).ok());
  }
  RecordingBackend& Listen() {
    backend.controls.needs_locked_memory = true;
    backend.controls.on_taken = [this](const std::string& line) {
      if (!line.starts_with("a0 ")) return;
      const Ticket ticket = std::stoull(line.substr(3));
      // The line of a ticket that has completed may come late.
      if (ticket <= meets_behind) return;
      meets_behind = kNever;
      second.Wait(b, first, a, ticket);
      const Ticket read = second.Copy(b, {second, Handle(0)}, {first, Handle(0)}, kPoisonedBytes);
      MR_EXPECT(second.Completes(b, read));
      has_met = true;
    };
    return backend;
  }
  /// Gives the ticket of the launch that failed.
  Ticket Poison() {
    backend.controls.refuse_launches = 1;
    const Ticket failed = first.Launch(a, Handle(0), Handle(0), Access::kWrite);
    MR_EXPECT(first.Completes(a, failed));
    return failed;
  }
  /// Whether the other device could use what `write` wrote.
  bool ClearsPoison(const std::function<Ticket()>& write) {
    const Ticket failed = Poison();
    const size_t failures = second.Failures(b).size();
    has_met = false;
    meets_behind = failed;
    MR_EXPECT(first.Completes(a, write()));
    MR_EXPECT(Eventually([&] { return has_met.load(); }));
    return second.Failures(b).size() == failures;
  }

  std::array<std::byte, kPoisonedBytes> host{};
  static constexpr Ticket kNever = std::numeric_limits<Ticket>::max();
  std::atomic<Ticket> meets_behind{kNever};
  std::atomic<bool> has_met{false};
  RecordingBackend backend;
  Rig first;
  Rig second;
  uint32_t a = 0;
  uint32_t b = 0;
};

MR_TEST(a_write_clears_before_its_work_can_be_over) {
  Meeting meeting;
  auto& [host, meets_behind, has_met, backend, first, second, a, b] = meeting;
  const protocol::FillStridedRecord fill{.handle = Handle(0), .element_bytes = 4};
  const protocol::CopyStridedRecord copy{.dst_handle = Handle(0), .src_handle = Handle(1), .element_bytes = 4};
  const std::vector<protocol::StridedAxis> all{{4, 4, 4}};
  MR_EXPECT(meeting.ClearsPoison([&] { return first.Fill(a, Handle(0), kPoisonedBytes); }));
  MR_EXPECT(meeting.ClearsPoison([&] { return first.Strided(a, fill, {{4, 4, 0}}); }));
  MR_EXPECT(meeting.ClearsPoison([&] { return first.Strided(a, copy, all); }));
  MR_EXPECT(meeting.ClearsPoison([&] { return first.Copy(a, Handle(0), Handle(1), kPoisonedBytes); }));
  MR_EXPECT(meeting.ClearsPoison([&] {
    return first.Copy(a, {first, Handle(0)}, {second, Handle(1)}, kPoisonedBytes);
  }));
  MR_EXPECT(meeting.ClearsPoison([&] { return first.Launch(a, Handle(0), Handle(0), Access::kWrite); }));
  // By the blocking-calls thread.
  MR_EXPECT(meeting.ClearsPoison([&] {
    return first.Copy(a, {first, Handle(0)}, {first, Handle(0), MemorySpace::kHost}, kPoisonedBytes);
  }));
  // A partial write clears nothing.
  MR_EXPECT(!meeting.ClearsPoison([&] { return first.Fill(a, Handle(0), kPoisonedBytes - 1); }));
}

MR_TEST(a_write_that_is_refused_poisons_anew) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), kPoisonedBytes);
  rig.Alloc(a, Handle(1), kPoisonedBytes);
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  backend.controls.refuse_launches = 1;
  backend.controls.refuse_fills = 1;
  rig.Launch(a, Handle(0), Handle(0), Access::kWrite);
  rig.Nop(a);
  const Ticket filled = rig.Fill(a, Handle(0), kPoisonedBytes);
  const Ticket read = rig.Copy(a, Handle(1), Handle(0), kPoisonedBytes);
  MR_EXPECT(rig.Completes(a, read));
  const auto failures = rig.Failures(a);
  MR_REQUIRE(failures.size() == 3);
  MR_EXPECT(failures[1].first == filled && failures[1].status.code() == StatusCode::kLaunchFailed);
  MR_EXPECT(failures[2].first == read && failures[2].cause == failures[1].id);
}

MR_TEST(a_late_failure_reaches_all_records_in_flight_that_derive_from_it) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  for (const uint32_t n : {0u, 1u}) rig.Alloc(a, Handle(n), kPoisonedBytes);
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  std::vector<Ticket> expected;
  // More and more at once, each time from another place of the queue on.
  for (const int count : {5, 20, 40, 70, 150, 300}) {
    rig.Fill(a, Handle(0), kPoisonedBytes);
    for (int n = 0; n < 45; ++n) rig.Launch(a, Handle(0), Handle(0), Access::kReadWrite);
    MR_EXPECT(rig.Completes(a, rig.Nop(a).ticket));
    backend.controls.completes_at_once = false;
    std::vector<Ticket> launched;
    for (int n = 0; n < count; ++n)
      launched.push_back(rig.Launch(a, Handle(0), Handle(n % 3 == 1 ? 1 : 0), Access::kReadWrite));
    MR_EXPECT(rig.Logs("a0 " + std::to_string(launched.back()) + " launch"));
    for (int n = 3; n < count; ++n) {
      if (n % 3 != 1) expected.push_back(launched[n]);
    }
    rig.Backend(0).sink().Failed(launched[3], {.status = Status(StatusCode::kBounds, "by the test")});
    backend.controls.completes_at_once = true;
    rig.Backend(0).Complete(launched.back());
  }
  std::vector<Ticket> failed;
  for (const Failure& failure : rig.Failures(a)) {
    for (Ticket ticket = failure.first; ticket <= failure.last; ++ticket) failed.push_back(ticket);
  }
  MR_EXPECT(failed == expected);
}

MR_TEST(a_late_failure_does_not_poison_anew_what_was_overwritten_since_another_one) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t slow = rig.Stream();
  const uint32_t quick = rig.Stream();
  const uint32_t other = rig.Stream();
  for (const uint32_t n : {0u, 1u, 2u}) rig.Alloc(other, Handle(n), kPoisonedBytes);
  MR_EXPECT(rig.Completes(other, rig.Nop(other).ticket));
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  backend.controls.completes_at_once = false;
  const Ticket late = rig.Launch(slow, Handle(0), Handle(0), Access::kReadWrite);
  const Ticket early = rig.Launch(quick, Handle(0), Handle(1), Access::kReadWrite);
  MR_EXPECT(rig.Logs("a0 " + std::to_string(late) + " launch"));
  MR_EXPECT(rig.Logs("a1 " + std::to_string(early) + " launch"));
  rig.Backend(1).sink().Failed(early, {.status = Status(StatusCode::kBounds, "by the test")});
  backend.controls.completes_at_once = true;
  // Overwritten, and no longer in flight. The failed launch still is.
  MR_EXPECT(rig.Completes(other, rig.Fill(other, Handle(1), kPoisonedBytes)));
  MR_EXPECT(rig.Completes(other, rig.Fill(other, Handle(2), kPoisonedBytes)));
  rig.Backend(0).sink().Failed(late, {.status = Status(StatusCode::kBounds, "by the test")});
  MR_EXPECT(rig.Completes(other, rig.Copy(other, Handle(2), Handle(1), kPoisonedBytes)));
  MR_EXPECT(rig.Failures(other).empty());
  MR_EXPECT(rig.Failures(slow).size() == 1);
  rig.Backend(0).Complete(late);
  rig.Backend(1).Complete(early);
}

MR_TEST(a_batch_fails_as_a_whole_and_poisons_all_that_it_writes) {
  RecordingBackend backend;
  backend.controls.needs_locked_memory = true;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  for (const uint32_t n : {0u, 1u, 2u, 3u}) rig.Alloc(a, Handle(n), kPoisonedBytes);
  std::array<std::byte, 4 * kPoisonedBytes> host{};
  MR_EXPECT(rig.channel->RegisterHost(Handle(0), host, false).ok());
  struct Batch {
    protocol::CopyBatchRecord head;
    protocol::BatchedCopy copies[2];
  };
  const auto pair = [&](uint32_t dst, uint32_t src, uint64_t bytes, MemorySpace src_space = MemorySpace::kDevice) {
    return protocol::BatchedCopy{.dst_handle = Handle(dst),
                                 .src_handle = Handle(src),
                                 .dst_space = static_cast<uint16_t>(MemorySpace::kDevice),
                                 .src_space = static_cast<uint16_t>(src_space),
                                 .dst_device = rig.channel->id(),
                                 .src_device = rig.channel->id(),
                                 .bytes = bytes};
  };
  const auto submit = [&](protocol::BatchedCopy one, protocol::BatchedCopy two, uint32_t count = 2) {
    Batch batch{.head = {.count = count}, .copies = {one, two}};
    rig.Head(batch.head, a);
    batch.head.header.size = sizeof(batch);
    const Ticket ticket = rig.channel->Submit(Bytes(batch)).ticket;
    MR_EXPECT(rig.Completes(a, ticket));
    return ticket;
  };
  const auto failures = [&] {
    size_t count = 0;
    for (const Failure& interval : rig.Failures(a)) count += interval.last - interval.first + 1;
    return count;
  };
  const Ticket first = submit(pair(2, 0, kPoisonedBytes), pair(3, 1, 4));
  MR_EXPECT_EQ(failures(), size_t{0});
  MR_EXPECT(backend.controls.log.Find("a0 " + std::to_string(first) + " batch of 2") >= 0);
  // Refused by the backend: both targets are poisoned, the sources are not.
  backend.controls.refuse_fills = 1;
  submit(pair(2, 0, kPoisonedBytes), pair(3, 1, 4));
  MR_EXPECT_EQ(failures(), size_t{1});
  submit(pair(0, 2, 4), pair(1, 1, 0));
  MR_EXPECT_EQ(failures(), size_t{2});
  // The first pair overwrites 3, but the second one reads 2: nothing is cleared, and 1 is poisoned too.
  submit(pair(3, 0, kPoisonedBytes), pair(1, 2, 4));
  MR_EXPECT_EQ(failures(), size_t{3});
  submit(pair(0, 3, 4), pair(0, 3, 0));
  submit(pair(0, 1, 4), pair(0, 1, 0));
  MR_EXPECT_EQ(failures(), size_t{5});
  // Host memory that is not page-locked; memory beyond the end; more entries than the record has.
  for (const uint32_t n : {0u, 1u, 2u, 3u}) MR_EXPECT(rig.Completes(a, rig.Fill(a, Handle(n), kPoisonedBytes)));
  MR_EXPECT_EQ(failures(), size_t{5});
  submit(pair(0, 0, 4, MemorySpace::kHost), pair(1, 2, 4));
  MR_EXPECT_EQ(failures(), size_t{6});
  submit(pair(2, 3, kPoisonedBytes + 1), pair(1, 3, 4));
  submit(pair(2, 3, 4), pair(1, 3, 4), 3);
  submit(pair(2, 3, 4), pair(1, 3, 4), 0);
  MR_EXPECT_EQ(failures(), size_t{9});
}

}  // namespace
}  // namespace millrace::testing
