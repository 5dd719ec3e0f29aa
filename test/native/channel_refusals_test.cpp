// Records that the channel refuses for what they say: they poison what they would have written.
#include "graph_rig.h"

namespace millrace::testing {
namespace {

constexpr uint64_t kArrayBytes = 64;

/// Submits records that write the memory Handle(index), each refused, and reads the memory behind them.
struct Refusals {
  RecordingBackend backend;
  Rig rig{backend};
  const uint32_t a = rig.Stream();
  uint32_t next = 10;

  Refusals() {
    Install(rig);
    rig.Alloc(a, Handle(1), kArrayBytes);
    rig.Alloc(a, Handle(2), kArrayBytes);
  }

  uint32_t NewMemory() {
    rig.Alloc(a, Handle(++next), kArrayBytes);
    return Handle(next);
  }
  Ticket SubmitBytes(ByteList bytes) {
    std::memcpy(bytes.data() + offsetof(protocol::RecordHeader, stream), &a, sizeof(a));
    return rig.channel->Submit(bytes).ticket;
  }
  /// The last failures are those of the refused record and of what reads `memory` behind it.
  void ExpectPoisoned(uint32_t memory) {
    const Ticket read = rig.Copy(a, Handle(2), memory, kArrayBytes);
    MR_REQUIRE(rig.Completes(a, read));
    const std::vector<Failure> failures = rig.Failures(a);
    MR_REQUIRE(failures.size() >= 2);
    const Failure& refused = failures[failures.size() - 2];
    MR_EXPECT(refused.status.code() == StatusCode::kInternal);
    MR_EXPECT(failures.back().status.code() == StatusCode::kUpstream && failures.back().first == read);
    MR_EXPECT_EQ(failures.back().cause, refused.id);
    rig.Fill(a, Handle(2), kArrayBytes);
  }
};

MR_TEST(a_refused_fill_or_copy_poisons_its_destination) {
  Refusals refusals;
  Rig& rig = refusals.rig;
  const uint32_t a = refusals.a;
  const auto expect = [&](auto submit) {
    const uint32_t memory = refusals.NewMemory();
    submit(memory);
    refusals.ExpectPoisoned(memory);
  };
  expect([&](uint32_t memory) { rig.Fill(a, memory, kArrayBytes + 1); });
  expect(
      [&](uint32_t memory) { rig.Submit(a, protocol::FillRecord{.handle = memory, .element_bytes = 3, .count = 1}); });
  expect([&](uint32_t memory) {
    rig.Strided(a, protocol::FillStridedRecord{.handle = memory, .element_bytes = 4, .offset = 2}, {{1, 4, 0}});
  });
  expect([&](uint32_t memory) { rig.Copy(a, memory, Handle(1), kArrayBytes + 1); });
  expect([&](uint32_t memory) { rig.Copy(a, memory, Handle(1, 0), kArrayBytes); });
  expect([&](uint32_t memory) {
    rig.Strided(a, protocol::CopyStridedRecord{.dst_handle = memory, .src_handle = Handle(1), .element_bytes = 4},
                {{kArrayBytes, 4, 4}});
  });
  expect([&](uint32_t memory) {
    const auto device = static_cast<uint16_t>(MemorySpace::kDevice);
    const uint32_t id = rig.channel->id();
    const auto copy = [&](uint32_t dst, uint64_t bytes) {
      return protocol::BatchedCopy{.dst_handle = dst,
                                   .src_handle = Handle(1),
                                   .dst_space = device,
                                   .src_space = device,
                                   .dst_device = id,
                                   .src_device = id,
                                   .bytes = bytes};
    };
    const uint32_t whole = refusals.NewMemory();
    const std::vector<protocol::BatchedCopy> copies = {copy(whole, kArrayBytes + 1), copy(memory, kArrayBytes)};
    refusals.SubmitBytes(RecordBytes(protocol::CopyBatchRecord{.count = 2}, copies));
  });
}

MR_TEST(a_refused_launch_poisons_what_it_writes_and_nothing_else) {
  Refusals refusals;
  const uint32_t read = refusals.NewMemory();
  const uint32_t written = refusals.NewMemory();
  refusals.SubmitBytes(
      LaunchBytes(Handle(0), {MemoryArg(read, Access::kRead, kArrayBytes + 1), MemoryArg(written, Access::kWrite)}));
  refusals.ExpectPoisoned(written);
  const Ticket copied = refusals.rig.Copy(refusals.a, Handle(2), read, kArrayBytes);
  MR_REQUIRE(refusals.rig.Completes(refusals.a, copied));
  MR_EXPECT(refusals.rig.Failures(refusals.a).back().last < copied);
}

MR_TEST(memory_elsewhere_is_named_as_that_of_another_device) {
  Refusals refusals;
  const uint32_t written = refusals.NewMemory();
  const auto elsewhere = [&](uint32_t device, MemorySpace space, uint64_t bytes) {
    return protocol::LaunchArg{.kind = static_cast<uint8_t>(protocol::ArgKind::kElsewhere),
                               .size = static_cast<uint16_t>(space),
                               .handle = device,
                               .value = bytes};
  };
  const uint32_t own = refusals.rig.channel->id();
  // Its own memory has no such entry; the entry needs one of memory behind it; host memory that is not there.
  for (const std::vector<protocol::LaunchArg>& wrong :
       {std::vector{elsewhere(own, MemorySpace::kDevice, kArrayBytes), MemoryArg(Handle(1), Access::kRead)},
        std::vector{elsewhere(own, MemorySpace::kHost, 4), ScalarArg(1)},
        std::vector{elsewhere(own, MemorySpace::kHost, 4), MemoryArg(Handle(9, 0), Access::kRead)},
        std::vector{elsewhere(own, static_cast<MemorySpace>(7), 4), MemoryArg(Handle(1), Access::kRead)}}) {
    std::vector<protocol::LaunchArg> args = wrong;
    args.push_back(MemoryArg(written, Access::kWrite));
    refusals.SubmitBytes(LaunchBytes(Handle(0), args));
    refusals.ExpectPoisoned(written);
    refusals.rig.Fill(refusals.a, written, kArrayBytes);
  }
}

MR_TEST(a_refused_allocation_is_memory_that_failed) {
  Refusals refusals;
  refusals.rig.Alloc(refusals.a, Handle(500), kArrayBytes, static_cast<protocol::AllocKind>(9));
  const Ticket filled = refusals.rig.Fill(refusals.a, Handle(500), 1);
  MR_REQUIRE(refusals.rig.Completes(refusals.a, filled));
  MR_EXPECT(refusals.rig.Failures(refusals.a).back().status.code() == StatusCode::kUpstream);
}

MR_TEST(a_refused_launch_of_a_graph_poisons_what_its_nodes_write) {
  Refusals refusals;
  Rig& rig = refusals.rig;
  const uint32_t filled = refusals.NewMemory();
  GraphBytes graph;
  graph.Node(rig.channel->id(), FillBytes(filled, kArrayBytes));
  graph.Node(rig.channel->id(), FillBytes(Handle(1), kArrayBytes + 1));
  Define(rig, graph);
  refusals.SubmitBytes(RecordBytes(protocol::LaunchGraphRecord{.graph = Handle(0)}));
  refusals.ExpectPoisoned(filled);
}

}  // namespace
}  // namespace millrace::testing
