// Strided copies and fills, and batches of copies of the CUDA backend: merged axes, and results compared with a plain
// loop. On the fake driver, which runs the kernels' own sources, or on this machine's driver:
//
//   nvcc -cubin -arch=sm_90 -o cuda_kernels.cubin cuda_kernels.cu && cuda_strided_test cuda_kernels.cubin
#include <cstdint>
#include <numeric>
#include <random>

#include "cuda/strided.h"
#include "cuda_fixture.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

using Axes = std::vector<hal::StridedAxis>;

std::byte* At(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

MR_TEST(AxesThatContinueEachOtherAreOneRun) {
  // A contiguous array of 4 x 5 x 6 floats, its axes in any order and one of them backwards on both sides.
  const Axes axes = {{5, 24, 24}, {6, -4, -4}, {4, 120, 120}};
  const auto plan = cuda::PlanStrided(At(0x1014), At(0x2014), 4, 0, axes);
  MR_EXPECT(cuda::IsRun(plan));
  MR_EXPECT_EQ(plan.dst, 0x1000u);
  MR_EXPECT_EQ(plan.src, 0x2000u);
  MR_EXPECT_EQ(plan.count * plan.element_bytes, 480u);
  MR_EXPECT_EQ(plan.element_bytes, 16u);
  // One element, and none of several axes left.
  MR_EXPECT(cuda::IsRun(cuda::PlanStrided(At(0x1000), At(0x2000), 8, 0, Axes{{1, 8, 99}, {1, 3, 5}})));
  MR_EXPECT(cuda::IsRun(cuda::PlanStrided(At(0x1000), nullptr, 8, 0, {})));
}

MR_TEST(RunsTakeWiderElements) {
  // Rows of 32 bytes: two elements of 16. Then one that starts at an odd address, and a fill, which goes up to 8.
  auto plan = cuda::PlanStrided(At(0x1000), At(0x2000), 1, 0, Axes{{7, 64, 48}, {32, 1, 1}});
  MR_EXPECT_EQ(plan.element_bytes, 16u);
  MR_EXPECT_EQ(plan.extents[0], 2u);
  MR_EXPECT_EQ(plan.count, 14u);
  plan = cuda::PlanStrided(At(0x1001), At(0x2000), 1, 0, Axes{{7, 64, 48}, {32, 1, 1}});
  MR_EXPECT_EQ(plan.element_bytes, 1u);
  plan = cuda::PlanStrided(At(0x1000), nullptr, 2, 0xbeef, Axes{{7, 64, 0}, {4, 2, 0}});
  MR_EXPECT_EQ(plan.element_bytes, 8u);
  MR_EXPECT_EQ(plan.rank, 1u);
  MR_EXPECT_EQ(plan.pattern, 0xbeefbeefbeefbeefu);
}

MR_TEST(FactorsDivideWhateverTheNarrowKernelsCount) {
  std::mt19937_64 random(7);
  constexpr uint64_t kLimit = uint64_t{1} << 31;
  std::vector<uint64_t> extents = {2, 3, 5, 7, 255, 256, 257, 65535, 65536, kLimit - 1, kLimit / 2 + 1};
  for (int i = 0; i < 200; ++i) extents.push_back(2 + random() % (kLimit - 2));
  int wrong = 0;
  for (const uint64_t extent : extents) {
    const auto plan = cuda::PlanStrided(At(0x1000), nullptr, 1, 0, Axes{{extent, 3, 0}});
    std::vector<uint64_t> numbers = {0, 1, extent - 1, extent, extent + 1, 2 * extent - 1, kLimit - 1};
    for (int i = 0; i < 100; ++i) numbers.push_back(random() % kLimit);
    for (const uint64_t number : numbers) {
      if (number >= kLimit) continue;
      const auto high = static_cast<uint32_t>((number * plan.factors[0]) >> 32);
      const uint32_t quotient = (high + static_cast<uint32_t>(number)) >> plan.shifts[0];
      wrong += quotient != number / extent;
    }
  }
  MR_EXPECT_EQ(wrong, 0);
}

/// The byte offsets of every element, first axis slowest.
std::vector<std::pair<int64_t, int64_t>> Offsets(const Axes& axes) {
  std::vector<std::pair<int64_t, int64_t>> offsets = {{0, 0}};
  for (const hal::StridedAxis& axis : axes) {
    std::vector<std::pair<int64_t, int64_t>> next;
    for (const auto& [dst, src] : offsets) {
      for (uint64_t i = 0; i < axis.extent; ++i) {
        const auto index = static_cast<int64_t>(i);
        next.emplace_back(dst + index * axis.dst_stride, src + index * axis.src_stride);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

struct Layout {
  std::vector<int64_t> strides;
  int64_t start = 0;
  int64_t bytes = 0;
};

/// Gives each axis its own stride: axes in random order, with gaps, some backwards.
Layout RandomLayout(std::mt19937& random, const std::vector<uint64_t>& extents, uint32_t element_bytes) {
  std::vector<size_t> order(extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
  Layout layout;
  layout.strides.resize(extents.size());
  int64_t size = element_bytes;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    const auto extent = static_cast<int64_t>(extents[*axis]);
    if (random() % 3 == 0) size += element_bytes * static_cast<int64_t>(random() % 3);
    layout.strides[*axis] = size;
    if (random() % 4 == 0) {
      layout.strides[*axis] = -size;
      layout.start += size * (extent - 1);
    }
    size *= extent;
  }
  layout.bytes = size;
  return layout;
}

MR_TEST(StridedWorkDoesWhatALoopDoes) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  constexpr int64_t kBytes = 1 << 20;
  Pinned src(*opened.device, kBytes);
  Pinned dst(*opened.device, kBytes);
  std::vector<std::byte> expected(kBytes);
  std::mt19937 random(11);
  for (int64_t i = 0; i < kBytes; ++i) src.data[i] = static_cast<std::byte>(random());
  Ticket ticket = 0;
  int wrong = 0;
  int kernels = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t element_bytes = 1u << random() % 4;
    std::vector<uint64_t> extents(random() % (protocol::kMaxRank + 1));
    for (uint64_t& extent : extents) extent = 1 + random() % (extents.size() > 4 ? 3 : 9);
    const Layout to = RandomLayout(random, extents, element_bytes);
    const Layout from = RandomLayout(random, extents, element_bytes);
    MR_REQUIRE(to.bytes < kBytes - 64 && from.bytes < kBytes - 64);
    Axes axes(extents.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = {extents[i], to.strides[i], from.strides[i]};
    // Sometimes at an unaligned address.
    std::byte* const into = dst.data + to.start + element_bytes * (random() % 4);
    const std::byte* const out = src.data + from.start + element_bytes * (random() % 4);
    std::memset(dst.data, 0x5a, kBytes);
    std::memset(expected.data(), 0x5a, kBytes);
    std::byte* const expected_into = expected.data() + (into - dst.data);
    const uint64_t pattern = (uint64_t{random()} << 32) | random();
    const bool is_copy = round % 3 != 0;
    for (const auto& [to_offset, from_offset] : Offsets(axes)) {
      const void* const value = is_copy ? static_cast<const void*>(out + from_offset) : &pattern;
      std::memcpy(expected_into + to_offset, value, element_bytes);
    }
    if (is_copy) {
      kernels += !cuda::IsRun(cuda::PlanStrided(into, out, element_bytes, 0, axes));
      MR_REQUIRE(stream->CopyStrided(++ticket, into, out, element_bytes, axes).ok());
    } else {
      MR_REQUIRE(stream->FillStrided(++ticket, into, element_bytes, pattern, axes).ok());
    }
    MR_REQUIRE(Finish(*stream, ticket));
    wrong += std::memcmp(dst.data, expected.data(), kBytes) != 0;
  }
  MR_EXPECT_EQ(wrong, 0);
  MR_EXPECT(kernels > 100);
}

// The wide kernels, for which no test has enough memory, give the narrow ones' results.
MR_TEST(WideKernelsAgreeWithNarrowOnes) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned src(*opened.device, 4096);
  Pinned dst(*opened.device, 8192);
  for (int i = 0; i < 4096; ++i) src.data[i] = static_cast<std::byte>(i * 7);
  auto context = cuda::Context::Retain(0);
  MR_REQUIRE(context.ok());
  auto loaded = cuda::BuiltIns::Load(context.value());
  MR_REQUIRE(loaded.ok());
  cuda::BuiltIns kernels = loaded.value();
  MR_REQUIRE(kernels.copy_wide != nullptr && kernels.fill_wide != nullptr);
  // LaunchStrided chooses by the count; here the wide kernel replaces the narrow one.
  kernels.copy_narrow = kernels.copy_wide;
  kernels.fill_narrow = kernels.fill_wide;
  const auto own = reinterpret_cast<cuda::CUstream>(stream->NativeHandle());
  const Axes axes = {{16, 4, 128}, {32, 128, 4}};
  Ticket ticket = 0;
  for (const std::byte* from : {static_cast<const std::byte*>(src.data), static_cast<const std::byte*>(nullptr)}) {
    auto plan = cuda::PlanStrided(dst.data, from, 4, 0x01020304, axes);
    MR_REQUIRE(cuda::LaunchStrided(kernels, *context.value(), own, plan).ok());
    MR_REQUIRE(stream->Nop(++ticket).ok());
    MR_REQUIRE(Finish(*stream, ticket));
    int wrong = 0;
    for (const auto& [to_offset, from_offset] : Offsets(axes)) {
      const uint32_t fill = 0x01020304;
      wrong += std::memcmp(dst.data + to_offset,
                           from != nullptr ? from + from_offset : reinterpret_cast<const std::byte*>(&fill), 4) != 0;
    }
    MR_EXPECT_EQ(wrong, 0);
  }
}

MR_TEST(BatchesAreMadeInOneCallOrInSeveral) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned host(*opened.device, 1 << 16);
  std::iota(host.As<uint16_t>(), host.As<uint16_t>() + (1 << 15), uint16_t{1});
  auto memory = stream->Allocate(1, 1 << 15);
  MR_REQUIRE(memory.ok());
  std::byte* const device = memory.value()->address();
  std::byte* const behind = host.data + (1 << 15);
  Ticket ticket = 1;
  // Up in two pieces that change places, then down in three.
  const auto round = [&] {
    std::memset(behind, 0, 1 << 15);
    const hal::BatchedCopy up[] = {{device, host.data + (1 << 14), 1 << 14, {}},
                                   {device + (1 << 14), host.data, 1 << 14, {}}};
    const hal::BatchedCopy down[] = {{behind, device, 5, {}},
                                     {behind + 5, device + 5, (1 << 15) - 12, {}},
                                     {behind + (1 << 15) - 7, device + (1 << 15) - 7, 7, {}}};
    MR_REQUIRE(stream->CopyBatch(++ticket, up).ok());
    MR_REQUIRE(stream->CopyBatch(++ticket, down).ok());
    MR_REQUIRE(Finish(*stream, ticket));
    MR_EXPECT(std::memcmp(behind, host.data + (1 << 14), 1 << 14) == 0);
    MR_EXPECT(std::memcmp(behind + (1 << 14), host.data, 1 << 14) == 0);
  };
  round();
  if (!OnFake()) return;
  // A driver that knows the function but not on this device.
  FailCalls("cuMemcpyBatchAsync:0:801");
  round();
  // What is refused leaves the ticket open.
  FailCalls("cuMemcpyBatchAsync:1:1");
  const hal::BatchedCopy copies[] = {{device, host.data, 4, {}}, {device + 4, host.data, 4, {}}};
  MR_EXPECT_EQ(static_cast<int>(stream->CopyBatch(++ticket, copies).code()),
               static_cast<int>(StatusCode::kLaunchFailed));
  FailCalls("");
  MR_EXPECT(stream->Nop(ticket).ok());
  round();
}

}  // namespace
