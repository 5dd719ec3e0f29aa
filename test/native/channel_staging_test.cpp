// Host staging memory between devices of two backends: a failure poisons it by byte ranges, like device memory.
#include <array>

#include "channel_rig.h"
#include "runtime/host_entry.h"

namespace millrace::testing {
namespace {

using protocol::Access;
using protocol::CopyFlag;

MR_TEST(poisoned_ranges_are_told_apart_by_their_bytes) {
  PoisonedRanges ranges;
  MR_EXPECT_EQ(ranges.by(0, 100, false, 0), 0u);
  ranges.Set(10, 10, 7, false, HostPoison::kUnreported);
  ranges.Set(30, 10, 5, false, HostPoison::kUnreported);
  MR_EXPECT_EQ(ranges.by(0, 10, false, 0), 0u);
  MR_EXPECT_EQ(ranges.by(19, 1, false, 0), 7u);
  MR_EXPECT_EQ(ranges.by(20, 10, false, 0), 0u);
  MR_EXPECT_EQ(ranges.by(0, 31, false, 0), 5u);  // The first failure.
  // Overwriting the middle of a range leaves its ends poisoned.
  ranges.Overwrite(12, 4);
  MR_EXPECT_EQ(ranges.by(12, 4, false, 0), 0u);
  MR_EXPECT_EQ(ranges.by(11, 1, false, 0), 7u);
  MR_EXPECT_EQ(ranges.by(16, 1, false, 0), 7u);
  // A range across two, and one that replaces others.
  ranges.Overwrite(18, 15);
  MR_EXPECT_EQ(ranges.by(18, 15, false, 0), 0u);
  MR_EXPECT_EQ(ranges.by(33, 1, false, 0), 5u);
  ranges.Set(0, 100, 9, false, HostPoison::kUnreported);
  MR_EXPECT_EQ(ranges.by(15, 1, false, 0), 9u);
  ranges.Overwrite(0, 100);
  MR_EXPECT_EQ(ranges.by(0, 100, false, 0), 0u);
  // Lasting poison is seen only by those that ask for it, also what is left of it.
  ranges.Set(0, 10, 3, true, HostPoison::kUnreported);
  ranges.Overwrite(4, 2);
  MR_EXPECT(ranges.by(0, 10, false, 0) == 0 && ranges.by(0, 1, true, 0) == 3 && ranges.by(9, 1, true, 0) == 3);
}

/// A device of each backend with 16 bytes and a stream, and 64 bytes of staging memory that the first one created.
struct Route {
  Route() : first(one), second(other) {
    a = first.Stream();
    b = second.Stream();
    first.Alloc(a, Handle(0), 16);
    MR_EXPECT(second.Completes(b, second.Alloc(b, Handle(0), 16)));
    MR_EXPECT(first.channel->RegisterHost(Handle(0), host, true).ok());
    MR_EXPECT(first.channel->InstallKernel(Handle(0), {}).ok());
    MR_EXPECT(second.channel->InstallKernel(Handle(0), {}).ok());
  }
  void Poison() {
    one.controls.refuse_launches = 1;
    first.Launch(a, Handle(0), Handle(0), Access::kReadWrite);
  }
  /// From the first device to `at`, and from there to the second.
  Ticket Leave(uint64_t at, uint64_t bytes, uint32_t flags = Staged) {
    const auto device = static_cast<uint16_t>(MemorySpace::kDevice);
    const auto space = static_cast<uint16_t>(MemorySpace::kHost);
    const uint32_t id = first.channel->id();
    const Ticket left = first.Submit(a, protocol::CopyRecord{.dst_handle = Handle(0),
                                                             .src_handle = Handle(0),
                                                             .dst_space = space,
                                                             .src_space = device,
                                                             .dst_device = id,
                                                             .src_device = id,
                                                             .flags = flags,
                                                             .dst_offset = at,
                                                             .bytes = bytes});
    MR_EXPECT(first.Completes(a, left));
    return left;
  }
  Ticket SubmitArrival(uint64_t at, uint64_t bytes, uint32_t flags = Staged, uint64_t to = 0) {
    return second.Submit(b, protocol::CopyRecord{.dst_handle = Handle(0),
                                                 .src_handle = Handle(0),
                                                 .dst_space = static_cast<uint16_t>(MemorySpace::kDevice),
                                                 .src_space = static_cast<uint16_t>(MemorySpace::kHost),
                                                 .dst_device = second.channel->id(),
                                                 .src_device = first.channel->id(),
                                                 .flags = flags,
                                                 .dst_offset = to,
                                                 .src_offset = at,
                                                 .bytes = bytes});
  }
  Ticket Arrive(uint64_t at, uint64_t bytes, uint32_t flags = Staged, uint64_t to = 0) {
    const Ticket arrived = SubmitArrival(at, bytes, flags, to);
    MR_EXPECT(second.Completes(b, arrived));
    return arrived;
  }
  [[nodiscard]] bool IsPoisoned() {
    const Ticket launched = second.Launch(b, Handle(0), Handle(0), Access::kRead);
    MR_EXPECT(second.Completes(b, launched));
    const auto failures = second.Failures(b);
    return !failures.empty() && failures.back().last == launched;
  }

  static constexpr uint32_t Staged = static_cast<uint32_t>(CopyFlag::kStaged);
  static constexpr uint32_t Pinned = static_cast<uint32_t>(CopyFlag::kPinned);
  static constexpr uint32_t First = Staged | static_cast<uint32_t>(CopyFlag::kFirstPiece);
  std::array<std::byte, 64> host{};
  RecordingBackend one;
  RecordingBackend other;
  Rig first;
  Rig second;
  uint32_t a = 0;
  uint32_t b = 0;
};

MR_TEST(what_could_not_leave_poisons_its_staging_memory_and_what_it_would_have_arrived_at) {
  Route route;
  route.Poison();
  const Ticket left = route.Leave(16, 16);
  const Ticket arrived = route.Arrive(16, 16);
  const auto first = route.first.Failures(route.a);
  MR_REQUIRE(first.size() == 2 && first[1].first == left && first[1].cause == first[0].id);
  const auto second = route.second.Failures(route.b);
  MR_REQUIRE(second.size() == 1 && second[0].first == arrived);
  MR_EXPECT(second[0].status.code() == StatusCode::kUpstream && second[0].cause == first[0].id);
  // The kernel of the other device does not run on it.
  MR_EXPECT(route.IsPoisoned());
  MR_EXPECT_EQ(route.second.Failures(route.b).back().cause, first[0].id);
  // Bytes next to it are not poisoned.
  const size_t failures = route.second.Failures(route.b).size();
  route.Arrive(0, 16);
  MR_EXPECT(route.second.Failures(route.b).size() == failures && !route.IsPoisoned());
  // Overwriting it clears the poison; earlier reads keep their results.
  route.Arrive(16, 16);
  MR_EXPECT(route.IsPoisoned());
  route.first.Fill(route.a, Handle(0), 16);
  route.Leave(16, 16);
  MR_EXPECT(route.IsPoisoned());
  route.Arrive(16, 16);
  MR_EXPECT(!route.IsPoisoned());
}

MR_TEST(pinned_memory_is_poisoned_until_code_is_told_and_private_host_memory_never) {
  Route route;
  route.Poison();
  const Ticket left = route.Leave(16, 16, Route::Pinned);
  route.Arrive(16, 16, Route::Pinned);
  MR_EXPECT_EQ(route.second.Failures(route.b).size(), size_t{1});
  MR_EXPECT(route.IsPoisoned());
  MR_EXPECT_EQ(route.first.Failures(route.a).size(), size_t{2});
  // That the failures were read tells nobody, and neither does another operation's failure.
  route.first.channel->Reported(route.a, left - 1);
  route.Arrive(16, 16, Route::Pinned);
  MR_EXPECT(route.IsPoisoned());
  // A copy that was submitted before fails, also if it is issued afterwards.
  const Ticket held = route.second.Hold(route.b);
  const Ticket early = route.SubmitArrival(16, 16, Route::Pinned);
  route.first.channel->Reported(route.a, left);
  route.second.channel->ReleaseHold(route.b, held);
  MR_EXPECT(route.second.Completes(route.b, early) && route.IsPoisoned());
  const size_t failures = route.second.Failures(route.b).size();
  route.Arrive(16, 16, Route::Pinned);
  MR_EXPECT(route.second.Failures(route.b).size() == failures && !route.IsPoisoned());
  route.Leave(16, 16, 0);
  route.Arrive(16, 16, 0);
  MR_EXPECT_EQ(route.second.Failures(route.b).size(), failures);
  // Former staging memory is not poisoned either, for a copy without the staged flag.
  route.Leave(16, 16);
  route.Arrive(16, 16, 0);
  MR_EXPECT_EQ(route.second.Failures(route.b).size(), failures);
}

MR_TEST(pieces_clear_poison_together_where_they_overwrite_together) {
  Route route;
  const auto bring = [&](uint64_t at) {
    route.Leave(16, 8);
    route.Arrive(16, 8, at == 0 ? Route::First : Route::Staged, at);
  };
  route.Poison();
  bring(0);
  MR_EXPECT(route.IsPoisoned());
  route.first.Fill(route.a, Handle(0), 16);
  bring(8);
  MR_EXPECT(route.IsPoisoned());
  bring(0);
  bring(8);
  MR_EXPECT(!route.IsPoisoned());
  // A later piece that fails poisons all of it.
  bring(0);
  route.Poison();
  bring(8);
  MR_EXPECT(route.IsPoisoned());
}

MR_TEST(pageable_copies_poison_staging_memory_and_heed_it) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  backend.controls.needs_locked_memory = true;
  Rig other(backend, 1);
  const uint32_t b = other.Stream();
  std::array<std::byte, 16> host{};
  other.Alloc(b, Handle(0), 16);
  rig.Alloc(a, Handle(0), 16);
  MR_EXPECT(other.channel->RegisterHost(Handle(0), host, false).ok());
  const auto copy = [&](bool leaves) {
    const auto device = static_cast<uint16_t>(MemorySpace::kDevice);
    const auto space = static_cast<uint16_t>(MemorySpace::kHost);
    Rig& by = leaves ? other : rig;
    return by.Submit(leaves ? b : a, protocol::CopyRecord{.dst_handle = Handle(0),
                                                          .src_handle = Handle(0),
                                                          .dst_space = leaves ? space : device,
                                                          .src_space = leaves ? device : space,
                                                          .dst_device = by.channel->id(),
                                                          .src_device = other.channel->id(),
                                                          .flags = Route::Staged,
                                                          .bytes = 16});
  };
  backend.controls.refuse_blocking_calls = 1;
  MR_EXPECT(other.Completes(b, copy(true)));
  MR_EXPECT(rig.Completes(a, copy(false)));
  MR_REQUIRE(other.Failures(b).size() == 1 && rig.Failures(a).size() == 1);
  MR_EXPECT(rig.Failures(a)[0].cause == other.Failures(b)[0].id);
  MR_EXPECT(other.Completes(b, copy(true)));
  MR_EXPECT(rig.Completes(a, copy(false)));
  MR_EXPECT(other.Failures(b).size() == 1 && rig.Failures(a).size() == 1);
}

MR_TEST(memory_that_another_backend_locked_is_copied_by_the_blocking_calls_thread) {
  RecordingBackend one;
  RecordingBackend other;
  Rig owner(one);
  other.controls.needs_locked_memory = true;
  Rig rig(other);
  const uint32_t a = rig.Stream();
  std::array<std::byte, 16> host{};
  MR_EXPECT(owner.channel->RegisterHost(Handle(0), host, true).ok());
  rig.Alloc(a, Handle(0), 16);
  MR_EXPECT(rig.Completes(a, rig.Copy(a, {rig, Handle(0)}, {owner, Handle(0), MemorySpace::kHost}, 16)));
  MR_EXPECT(rig.log->Find("a0 copies pageable 16") >= 0);
}

}  // namespace
}  // namespace millrace::testing
