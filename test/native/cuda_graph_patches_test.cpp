// Patches of copies, fills and records of events on the CUDA backend: on the fake driver, and unchanged on a GPU.
//
//   cuda_graph_patches_test                    on the fake driver
//   cuda_graph_patches_test cuda_kernels.cubin on the first GPU
#include <array>
#include <vector>

#include "cuda_fixture.h"
#include "cuda_graph_stream.h"
#include "graph_support.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT
using hal::GraphPatch;

constexpr uint64_t kPatchedBytes = 4096;

/// Memory of the device with a copy on the host.
struct Mirrored {
  Mirrored(Opened& opened, hal::Stream& stream, hal::Ticket& last)
      : stream(stream),
        last(last),
        host(*opened.device, kPatchedBytes),
        memory(stream.Allocate(++last, kPatchedBytes).value()) {
    MR_EXPECT(stream.Fill(++last, memory->address(), 1, 0, kPatchedBytes).ok());
  }
  ~Mirrored() { MR_EXPECT(stream.Free(++last, std::move(memory)).ok()); }
  template <typename T>
  T* Read() {
    MR_EXPECT(stream.Copy(++last, host.data, memory->address(), kPatchedBytes, {}).ok());
    MR_EXPECT(Finish(stream, last));
    return host.As<T>();
  }

  hal::Stream& stream;
  hal::Ticket& last;
  Pinned host;
  std::unique_ptr<hal::Memory> memory;
};

// G4.
MR_TEST(PatchesOfCopiesHoldFromTheirLaunchOn) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  hal::Ticket last = 0;
  Pinned from(*opened.device, kPatchedBytes);
  {
    Mirrored one(opened, *stream, last);
    Mirrored two(opened, *stream, last);
    for (uint32_t i = 0; i < kPatchedBytes / 4; ++i) from.As<uint32_t>()[i] = i;
    Nodes nodes(*opened.device);
    nodes.Add(hal::GraphCopy{one.memory->address(), from.data, 64, {}});
    nodes.Then(hal::GraphCopy{one.memory->address() + 64, one.memory->address(), 64, {}});
    auto graph = nodes.Build();
    const auto launch = [&](std::vector<GraphPatch> patches) {
      const Status status = stream->LaunchGraph(last + 1, {graph.get(), patches});
      if (status.ok()) ++last;
      return status;
    };
    std::byte* const other = two.memory->address();
    MR_EXPECT(launch({}).ok());
    MR_EXPECT(launch({{0, GraphPatch::kDst, Bits(other)},
                      {1, GraphPatch::kSrc, Bits(other + 4)},
                      {1, GraphPatch::kDst, Bits(other + 128)}})
                  .ok());
    MR_EXPECT(launch({{0, GraphPatch::kSrc, Bits(from.data + 400)}}).ok());
    const auto* const first = one.Read<uint32_t>();
    MR_EXPECT(first[0] == 0 && first[15] == 15 && first[16] == 0 && first[31] == 15 && first[32] == 0);
    const auto* const second = two.Read<uint32_t>();
    MR_EXPECT(second[0] == 100 && second[15] == 115 && second[32] == 101 && second[46] == 115 && second[16] == 0);
    if (OnFake()) {
      FailCalls("cuGraphExecMemcpyNodeSetParams:1:2");
      MR_EXPECT(launch({{0, GraphPatch::kSrc, Bits(from.data + 800)}}).code() == StatusCode::kOutOfMemory);
      FailCalls("");
      MR_EXPECT(launch({}).ok());
      MR_EXPECT_EQ(two.Read<uint32_t>()[0], 100u);
    }
  }
  MR_EXPECT(Finish(*stream, last));
}

MR_TEST(PatchesOfFillsReplaceMemoryPatternAndCount) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  hal::Ticket last = 0;
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    Mirrored one(opened, *stream, last);
    Mirrored two(opened, *stream, last);
    Nodes nodes(*opened.device);
    nodes.Add(hal::GraphFill{one.memory->address(), size, 0x0101010101010101, 3, true});
    auto graph = nodes.Build();
    const auto launch = [&](std::vector<GraphPatch> patches) {
      const Status status = stream->LaunchGraph(last + 1, {graph.get(), patches});
      if (status.ok()) ++last;
      return status;
    };
    MR_EXPECT(launch({}).ok());
    // Its halves differ.
    MR_EXPECT(launch({{0, GraphPatch::kDst, Bits(two.memory->address() + size)},
                      {0, GraphPatch::kPattern, 0x1112131415161718},
                      {0, GraphPatch::kCount, kPatchedBytes / size - 2}})
                  .ok());
    const auto* const first = one.Read<uint8_t>();
    MR_EXPECT(first[0] == 1 && first[3 * size - 1] == 1 && first[3 * size] == 0);
    const auto* const second = two.Read<uint8_t>();
    MR_EXPECT(second[size - 1] == 0 && second[size] == 0x18 && second[kPatchedBytes - size] == 0);
    MR_EXPECT_EQ(second[2 * size - 1], 0x18 - (size - 1));
    MR_EXPECT_EQ(second[kPatchedBytes - 2 * size], 0x18);
    if (OnFake()) {
      FailCalls(size == 8 ? "cuGraphExecKernelNodeSetParams:1:2" : "cuGraphExecMemsetNodeSetParams:1:2");
      MR_EXPECT(launch({{0, GraphPatch::kPattern, 0}}).code() == StatusCode::kOutOfMemory);
      FailCalls("");
    }
    MR_EXPECT(launch({{0, GraphPatch::kDst, Bits(one.memory->address())}, {0, GraphPatch::kCount, 1}}).ok());
    const auto* const again = one.Read<uint8_t>();
    MR_EXPECT(again[0] == 0x18 && again[size] == 1);
  }
  MR_EXPECT(Finish(*stream, last));
}

MR_TEST(EventsAreRecordedBetweenTheNodesAndByTheLaunchThatNamesThem) {
  Opened opened(0);
  auto affine = opened.Load("affine");
  const auto make = [&] {
    return std::shared_ptr<hal::EventHandle>(
        std::move(opened.device->CreateEvent(protocol::EventKind::kTiming).value()));
  };
  const auto between = [&](const auto& start, const auto& end) { return opened.device->Elapsed(*start, *end).value(); };
  const std::array built{make(), make()};
  Pinned word(*opened.device, 4);
  Nodes nodes(*opened.device);
  nodes.Then(hal::GraphRecord{built[0]});
  for (unsigned i = 0; i < 50; ++i) nodes.Then(KernelNode(affine, {1, 1, 1}, word.As<unsigned>(), 1u, 1u));
  nodes.Then(hal::GraphRecord{built[1]});
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  MR_REQUIRE(lane.Launch(*graph).ok() && lane.Drained());
  const double first = between(built[0], built[1]);
  const std::array given{make(), make()};
  const std::vector<hal::GraphPatch> patches{{0, hal::GraphPatch::kEvent, Bits(given[0].get())},
                                             {51, hal::GraphPatch::kEvent, Bits(given[1].get())}};
  if (OnFake()) {
    FailCalls("cuGraphExecEventRecordNodeSetEvent:2:2");
    MR_EXPECT(lane.Launch(*graph, patches).code() == StatusCode::kOutOfMemory);
    FailCalls("");
  }
  MR_REQUIRE(lane.Launch(*graph, patches).ok() && lane.Drained());
  MR_EXPECT(first > 0 && between(built[0], built[1]) == first);
  MR_EXPECT(between(given[0], given[1]) > 0 && between(built[1], given[0]) > 0);
}

}  // namespace
