// Copies and fills of the CPU backend: strided ones compared with an element-by-element model, large ones on several
// threads, and copies between devices.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "cpu/strided.h"
#include "cpu_support.h"

namespace millrace {
namespace {

using hal::StridedAxis;
using Bytes = std::vector<std::byte>;

constexpr uint64_t kMiB = 1 << 20;

// Calls `visit(dst offset, src offset)` for each element.
template <typename Visit>
void ForEachElement(const std::vector<StridedAxis>& axes, const Visit& visit) {
  std::vector<uint64_t> index(axes.size());
  while (true) {
    int64_t dst = 0;
    int64_t src = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      dst += static_cast<int64_t>(index[i]) * axes[i].dst_stride;
      src += static_cast<int64_t>(index[i]) * axes[i].src_stride;
    }
    visit(dst, src);
    size_t axis = axes.size();
    while (axis > 0 && ++index[axis - 1] == axes[axis - 1].extent) index[--axis] = 0;
    if (axis == 0) return;
  }
}

Bytes Pattern(size_t size) {
  Bytes bytes(size);
  uint32_t random = 1;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((random = random * 1664525 + 1013904223) >> 24);
  return bytes;
}

// One side of a strided operation: a dense layout with the axes in any order, gaps and negative strides.
struct Layout {
  std::vector<int64_t> strides;
  int64_t first = 0;  // Of the element whose indices are all 0.
  int64_t bytes = 0;
};

Layout RandomLayout(std::mt19937& random, const std::vector<StridedAxis>& axes, int64_t element, bool may_repeat) {
  Layout layout;
  layout.strides.resize(axes.size());
  std::vector<size_t> order(axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
  int64_t step = element;
  for (size_t axis : order) {
    if (may_repeat && random() % 6 == 0) continue;
    if (random() % 4 == 0) step += element * static_cast<int64_t>(random() % 3);
    const auto extent = static_cast<int64_t>(axes[axis].extent);
    const bool is_turned = random() % 4 == 0;
    layout.strides[axis] = is_turned ? -step : step;
    if (is_turned) layout.first += (extent - 1) * step;
    step *= extent;
  }
  layout.bytes = step;
  return layout;
}

std::vector<StridedAxis> RandomExtents(std::mt19937& random, size_t rank, uint64_t limit) {
  std::vector<StridedAxis> axes(rank);
  uint64_t count = 1;
  for (StridedAxis& axis : axes) {
    axis.extent = std::max<uint64_t>(1, std::min<uint64_t>(limit / count, 1 + random() % (rank > 3 ? 5 : 200)));
    count *= axis.extent;
  }
  return axes;
}

MR_TEST(StridedCopiesDoWhatTheModelDoes) {
  auto device = OpenDevice(3);
  Lane lane(*device);
  std::mt19937 random(1);
  for (int round = 0; round < 600; ++round) {
    const int64_t element = 1 << random() % 4;
    std::vector<StridedAxis> axes = RandomExtents(random, random() % (protocol::kMaxRank + 1), 60000);
    const Layout to = RandomLayout(random, axes, element, false);
    const Layout from = RandomLayout(random, axes, element, true);
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].dst_stride = to.strides[i];
      axes[i].src_stride = from.strides[i];
    }
    const Bytes src = Pattern(from.bytes);
    Bytes expected(to.bytes, std::byte{0x5a});
    Bytes dst = expected;
    ForEachElement(axes, [&](int64_t d, int64_t s) {
      std::memcpy(expected.data() + to.first + d, src.data() + from.first + s, element);
    });
    const auto size = static_cast<uint32_t>(element);
    MR_EXPECT(lane.stream->CopyStrided(++lane.last, dst.data() + to.first, src.data() + from.first, size, axes).ok());
    MR_REQUIRE(lane.Drained());
    MR_REQUIRE(dst == expected);
  }
}

MR_TEST(ABatchCopiesEachPair) {
  auto device = OpenDevice(4);
  Lane lane(*device);
  // One block for all, and blocks of all sizes around the size of a block.
  for (const std::vector<uint64_t>& sizes :
       {std::vector<uint64_t>{0, 1, 4096, 7}, {3 * kMiB + 5, 1, 128 << 10, 0, (128 << 10) + 1, 2 * kMiB - 1}}) {
    std::vector<Bytes> sources;
    std::vector<Bytes> targets;
    std::vector<hal::BatchedCopy> copies;
    for (const uint64_t size : sizes) {
      sources.push_back(Pattern(size));
      targets.emplace_back(size);
      copies.push_back({targets.back().data(), sources.back().data(), size, {}});
    }
    MR_EXPECT(lane.stream->CopyBatch(++lane.last, copies).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(targets == sources);
  }
}

MR_TEST(StridedFillsDoWhatTheModelDoes) {
  auto device = OpenDevice(3);
  Lane lane(*device);
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    const int64_t element = 1 << random() % 4;
    std::vector<StridedAxis> axes = RandomExtents(random, random() % (protocol::kMaxRank + 1), 60000);
    const Layout to = RandomLayout(random, axes, element, false);
    for (size_t i = 0; i < axes.size(); ++i) axes[i].dst_stride = to.strides[i];
    const uint64_t pattern = round % 3 == 0 ? 0 : 0x8877665544332211;
    std::vector<uint64_t> words(to.bytes / 8 + 1, 0x5a5a5a5a5a5a5a5a);
    Bytes expected(words.size() * 8, std::byte{0x5a});
    auto* dst = reinterpret_cast<std::byte*>(words.data());
    ForEachElement(axes, [&](int64_t d, int64_t) { std::memcpy(expected.data() + to.first + d, &pattern, element); });
    const auto size = static_cast<uint32_t>(element);
    MR_EXPECT(lane.stream->FillStrided(++lane.last, dst + to.first, size, pattern, axes).ok());
    MR_REQUIRE(lane.Drained());
    MR_REQUIRE(std::memcmp(dst, expected.data(), expected.size()) == 0);
  }
}

MR_TEST(LargeStridedWorkIsCutIntoTiles) {
  // One axis, odd rows, a transposition, and one with an outer axis: none a multiple of a tile.
  const std::vector<std::vector<StridedAxis>> shapes = {
      {{300001, 8, 12}},
      {{70001, 20, 24}, {3, 4, 8}},
      {{701, 4 * 503, 4}, {503, 4, 4 * 701}},
      {{5, 4 * 301 * 207, 4}, {301, 4 * 207, 4 * 5 * 207}, {207, 4, 4 * 5}},
      {{40, 4 * 20000, 4 * 20000}, {19999, 4, 4}},
  };
  auto device = OpenDevice(4);
  Lane lane(*device);
  for (const std::vector<StridedAxis>& axes : shapes) {
    int64_t dst_end = 0;
    int64_t src_end = 0;
    ForEachElement(axes, [&](int64_t d, int64_t s) {
      dst_end = std::max(dst_end, d + 4);
      src_end = std::max(src_end, s + 4);
    });
    const Bytes src = Pattern(src_end);
    Bytes expected(dst_end);
    Bytes dst(dst_end);
    ForEachElement(axes, [&](int64_t d, int64_t s) { std::memcpy(expected.data() + d, src.data() + s, 4); });
    MR_EXPECT(lane.stream->CopyStrided(++lane.last, dst.data(), src.data(), 4, axes).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(dst == expected);
  }
}

MR_TEST(AxesThatContinueEachOtherAreOneRun) {
  const auto is_run = [](std::initializer_list<StridedAxis> axes) {
    Bytes bytes(4096);
    return cpu::StridedShape(bytes.data(), bytes.data(), 4, std::span(axes.begin(), axes.size())).IsRun();
  };
  MR_EXPECT(is_run({}));
  MR_EXPECT(is_run({{1, -7, 99}}));
  MR_EXPECT(is_run({{3, 40, 40}, {1, 8, 4}, {10, 4, 4}}));
  // Transposed and reversed in the same way on both sides.
  MR_EXPECT(is_run({{10, 4, 4}, {3, 40, 40}}));
  MR_EXPECT(is_run({{3, 40, 40}, {10, -4, -4}}));
  MR_EXPECT(is_run({{3, -40, -40}, {10, -4, -4}}));
  MR_EXPECT(!is_run({{3, 40, 44}, {10, 4, 4}}));
  MR_EXPECT(!is_run({{3, 40, 40}, {10, 4, -4}}));
  MR_EXPECT(!is_run({{10, 4, 0}}));
  MR_EXPECT(!is_run({{10, 8, 8}}));
}

MR_TEST(LargeCopiesAndFillsAreWhole) {
  auto device = OpenDevice(4);
  Lane lane(*device);
  for (uint64_t size : {cpu::kSweepBytes - 8, cpu::kSweepBytes, cpu::kSweepBytes + 8, 9 * kMiB + 24}) {
    const Bytes src = Pattern(size);
    Bytes dst(size + 8);
    MR_EXPECT(lane.stream->Copy(++lane.last, dst.data(), src.data(), size).ok());
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(std::memcmp(dst.data(), src.data(), size) == 0);
    MR_EXPECT(dst[size] == std::byte{0});
    for (uint32_t element : {1u, 2u, 4u, 8u}) {
      for (const uint64_t pattern : {0x8877665544332211, 0xabababababababab}) {
        MR_EXPECT(lane.stream->Fill(++lane.last, dst.data(), element, pattern, size / element).ok());
        MR_REQUIRE(lane.Drained());
        // The first element, and every one like the one before it.
        MR_EXPECT(std::memcmp(dst.data(), &pattern, element) == 0);
        MR_EXPECT(std::memcmp(dst.data() + element, dst.data(), size - element) == 0);
        MR_EXPECT(dst[size] == std::byte{0});
      }
    }
  }
}

MR_TEST(LargeCopiesKeepTheOrderOfTheirStream) {
  auto device = OpenDevice(4);
  Bytes a = Pattern(4 * kMiB);
  const Bytes first = a;
  Bytes b(a.size());
  Bytes c(a.size());
  Lane lane(*device);
  for (int i = 0; i < 20; ++i) {
    MR_EXPECT(lane.stream->Copy(++lane.last, b.data(), a.data(), a.size()).ok());
    MR_EXPECT(lane.stream->Fill(++lane.last, a.data(), 1, i, a.size()).ok());
    MR_EXPECT(lane.stream->Copy(++lane.last, c.data(), b.data(), a.size()).ok());
    MR_EXPECT(lane.stream->Copy(++lane.last, a.data(), c.data(), a.size()).ok());
  }
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(a == first);
}

MR_TEST(ALargeFillLetsAnotherStreamIn) {
  auto device = OpenDevice(1);
  auto gate = LoadKernel(*device, "gate");
  auto affine = LoadKernel(*device, "affine");
  std::atomic<uint32_t> flag{0};
  uint32_t word = 0;
  Bytes large(64 * kMiB);
  auto filled = std::move(device->CreateEvent(protocol::EventKind::kTiming).value());
  auto visited = std::move(device->CreateEvent(protocol::EventKind::kTiming).value());
  Lane blocker(*device);
  Lane filling(*device);
  Lane other(*device);
  blocker.Launch(gate, {1, 1, 1}, &flag);
  MR_EXPECT(filling.stream->Fill(++filling.last, large.data(), 8, 0x8877665544332211, large.size() / 8).ok());
  MR_EXPECT(filling.stream->Record(++filling.last, *filled).ok());
  // After the fill in the pool's list, and run between two of its pieces.
  other.Launch(affine, {1, 1, 1}, &word, 0u, 1u);
  MR_EXPECT(other.stream->Record(++other.last, *visited).ok());
  flag.store(1);
  MR_REQUIRE(filling.Drained() && other.Drained());
  MR_EXPECT(device->Elapsed(*visited, *filled).value() > 0);
}

MR_TEST(CopiesReachTheMemoryOfOtherDevices) {
  auto one = OpenDevice();
  auto two = OpenDevice();
  auto three = OpenDevice();
  Lane a(*one);
  Lane b(*three);
  for (uint64_t size : {uint64_t{100}, 3 * kMiB}) {
    auto src = std::move(a.stream->Allocate(++a.last, size).value());
    Bytes content = Pattern(size);
    std::memcpy(src->address(), content.data(), size);
    Lane other(*two);
    auto dst = std::move(other.stream->Allocate(++other.last, size).value());
    // On a stream of the source's device, and then on one of a third.
    for (Lane* lane : {&a, &b}) {
      std::memset(dst->address(), 0, size);
      MR_EXPECT(
          lane->stream->CopyPeer(++lane->last, {dst->address(), two.get(), src->address(), one.get(), size}).ok());
      MR_REQUIRE(lane->Drained());
      MR_EXPECT(std::memcmp(dst->address(), content.data(), size) == 0);
    }
    MR_EXPECT(other.stream->Free(++other.last, std::move(dst)).ok());
    MR_EXPECT(a.stream->Free(++a.last, std::move(src)).ok());
  }
}

}  // namespace
}  // namespace millrace
