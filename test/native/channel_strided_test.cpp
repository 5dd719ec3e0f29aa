// Strided records: the axes that reach the backend, those rejected before any address is computed from them, and the
// writes that clear poison.
#include <cstring>
#include <limits>
#include <vector>

#include "channel_rig.h"
#include "runtime/strided.h"

namespace millrace::testing {
namespace {

constexpr int64_t kFarthest = std::numeric_limits<int64_t>::max();

protocol::FillStridedRecord FillOf(uint32_t handle, uint32_t element_bytes, uint64_t offset = 0) {
  return {.handle = handle, .element_bytes = element_bytes, .offset = offset, .pattern = 7};
}

MR_TEST(axes_reach_the_backend_as_they_are) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 64);
  rig.Alloc(a, Handle(1), 64);
  const protocol::CopyStridedRecord copy{
      .dst_handle = Handle(0), .src_handle = Handle(1), .element_bytes = 4, .dst_offset = 60};
  // Backwards in one, transposed and with a repeated element in the other.
  const Ticket copied = rig.Strided(a, copy, {{4, -16, 4}, {2, -4, 0}});
  const Ticket filled = rig.Strided(a, FillOf(Handle(0), 8, 8), {{3, 16, 0}});
  MR_EXPECT(rig.Completes(a, filled));
  MR_EXPECT(rig.Failures(a).empty());
  MR_EXPECT(backend.controls.log.Find("a0 " + std::to_string(copied) + " copy by 4 4:-16:4 2:-4:0") >= 0);
  MR_EXPECT(backend.controls.log.Find("a0 " + std::to_string(filled) + " fill 7 by 8 3:16:0") >= 0);
}

MR_TEST(axes_that_leave_the_memory_or_make_no_sense_fail) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 64);
  rig.Alloc(a, Handle(1), 32);
  struct Wrong {
    protocol::FillStridedRecord record;
    std::vector<protocol::StridedAxis> axes;
  };
  const std::vector<Wrong> fills = {
      {FillOf(Handle(0), 4), {}},
      {FillOf(Handle(0), 4), std::vector<protocol::StridedAxis>(9, {1, 4, 0})},
      {FillOf(Handle(0), 4), {{0, 4, 0}}},
      {FillOf(Handle(0), 3), {{1, 3, 0}}},
      {FillOf(Handle(0), 0), {{1, 0, 0}}},
      {FillOf(Handle(0), 4), {{17, 4, 0}}},     // One element past the end.
      {FillOf(Handle(0), 4, 60), {{2, 4, 0}}},  // The same, from an offset.
      {FillOf(Handle(0), 4, 4), {{3, -4, 0}}},  // One before the beginning.
      {FillOf(Handle(0), 4, 2), {{1, 4, 0}}},   // Not aligned, three ways.
      {FillOf(Handle(0), 4), {{2, 6, 0}}},
      {FillOf(Handle(0), 4), {{2, 4, 2}}},
      {FillOf(Handle(0), 4), {{2, 0, 0}}},           // Writes one element twice.
      {FillOf(Handle(0), 4), {{1ull << 62, 4, 0}}},  // 2^64 bytes away: back at the beginning.
      {FillOf(Handle(0), 4), {{1ull << 33, 8, 0}, {1ull << 33, 8, 0}}},
      {FillOf(Handle(0), 1), {{3, kFarthest, 0}}},
      {FillOf(Handle(0), 1), {{2, std::numeric_limits<int64_t>::min(), 0}}},
      {FillOf(Handle(0), 1), {{2, kFarthest, 0}, {2, kFarthest, 0}, {2, 2, 0}}},
      {FillOf(Handle(0), 1, UINT64_MAX), {{1, 1, 0}}},
      {FillOf(Handle(0, 0), 4), {{1, 4, 0}}},  // No handle.
  };
  MR_EXPECT(rig.Completes(a, 3));
  const size_t before = backend.controls.log.Size();
  Ticket last = 0;
  for (const Wrong& wrong : fills) last = rig.Strided(a, wrong.record, wrong.axes);
  const protocol::CopyStridedRecord copy{.dst_handle = Handle(0), .src_handle = Handle(1), .element_bytes = 4};
  last = rig.Strided(a, copy, {{9, 4, 4}});   // Past the end of the source alone.
  last = rig.Strided(a, copy, {{2, 4, -4}});  // Before its beginning.
  last = rig.Strided(a, copy, {{4, 32, 0}});  // Past the end of the destination.
  MR_EXPECT(rig.Completes(a, last));
  const auto failures = rig.Failures(a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT_EQ(failures[0].first, Ticket{4});
  MR_EXPECT_EQ(failures[0].last, last);
  MR_EXPECT(failures[0].status.code() == StatusCode::kInternal);
  for (size_t n = before; n < backend.controls.log.Size(); ++n)
    MR_EXPECT(backend.controls.log.Lines()[n].find("nop") != std::string::npos);
}

MR_TEST(a_strided_record_shorter_than_its_rank_says_fails) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 64);
  protocol::FillStridedRecord record = FillOf(Handle(0), 4);
  record.rank = 1;
  const Ticket last = rig.Submit(a, record);
  MR_EXPECT(rig.Completes(a, last));
  MR_EXPECT(rig.Failures(a).at(0).status.code() == StatusCode::kInternal);
}

MR_TEST(a_strided_write_clears_only_when_it_leaves_nothing_as_it_was) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), 48);
  rig.Alloc(a, Handle(1), 48);
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  const auto is_poisoned = [&] {
    const Ticket read = rig.Copy(a, Handle(1), Handle(0), 48);
    MR_EXPECT(rig.Completes(a, read));
    const auto failures = rig.Failures(a);
    return !failures.empty() && failures.back().last == read;
  };
  const auto poison = [&] {
    backend.controls.refuse_launches = 1;
    rig.Launch(a, Handle(0), Handle(0), protocol::Access::kWrite);
    MR_EXPECT(is_poisoned());
  };
  poison();
  rig.Strided(a, FillOf(Handle(0), 4), {{4, 12, 0}, {2, 4, 0}});  // Two of three columns.
  MR_EXPECT(is_poisoned());
  rig.Strided(a, FillOf(Handle(0), 4), {{4, 8, 0}, {3, 4, 0}});  // As many bytes as there are, some of them twice.
  MR_EXPECT(is_poisoned());
  rig.Strided(a, FillOf(Handle(0), 4), {{3, 4, 0}, {4, 12, 0}});  // Transposed.
  MR_EXPECT(!is_poisoned());
  poison();
  rig.Strided(a, FillOf(Handle(0), 4, 44), {{12, -4, 0}, {1, 0, 0}});  // Backwards.
  MR_EXPECT(!is_poisoned());
  poison();
  protocol::CopyStridedRecord copy{.dst_handle = Handle(0), .src_handle = Handle(1), .element_bytes = 8};
  rig.Strided(a, copy, {{6, 8, 0}});  // One element everywhere.
  // The other array became poisoned by reading from this one.
  MR_EXPECT(is_poisoned());
  rig.Fill(a, Handle(1), 48);
  rig.Strided(a, copy, {{6, 8, 0}});
  MR_EXPECT(!is_poisoned());
}

MR_TEST(strided_records_wait_for_memory_and_fail_with_their_source) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  rig.Alloc(b, Handle(1), 8);
  const protocol::CopyStridedRecord copy{.dst_handle = Handle(1), .src_handle = Handle(0), .element_bytes = 4};
  const Ticket copied = rig.Strided(b, copy, {{2, 4, 4}});
  MR_EXPECT(rig.Parks(b, ParkReason::kPoint));
  backend.controls.free_bytes = 4;
  const Ticket failed = rig.Alloc(a, Handle(0), 8);
  MR_EXPECT(rig.Completes(a, failed) && rig.Completes(b, copied));
  MR_EXPECT(rig.Failures(b).at(0).status.code() == StatusCode::kUpstream);
  MR_EXPECT(rig.Failures(b).at(0).cause == rig.Failures(a).at(0).id);
}

/// Computes the results of `CoversAll` and `StridesFit` byte by byte.
MR_TEST(small_axes_are_judged_as_counting_their_bytes_does) {
  uint32_t seed = 99;
  const auto random = [&](uint32_t n) {
    return (seed = seed * 1664525u + 1013904223u) >> 16 & 0xffff ? (seed >> 16) % n : 0;
  };
  int covering = 0;
  int fitting = 0;
  for (int round = 0; round < 40000; ++round) {
    const uint32_t element = 1u << random(3);
    StridedAxes axes;
    axes.rank = 1 + random(3);
    axes.elements = 1;
    for (uint32_t n = 0; n < axes.rank; ++n) {
      const uint64_t extent = 1 + random(4);
      int64_t stride = static_cast<int64_t>(element * (1 + random(12)));
      if (random(3) == 0) stride = -stride;
      axes.axes[n] = {.extent = extent, .dst_stride = stride};
      axes.elements *= extent;
    }
    const uint64_t offset = element * random(12);
    const uint64_t size = element * random(2) == 0 ? axes.elements * element : element * random(48);
    std::vector<int64_t> starts{static_cast<int64_t>(offset)};
    for (const hal::StridedAxis& axis : axes.span()) {
      std::vector<int64_t> next;
      for (const int64_t start : starts) {
        for (uint64_t n = 0; n < axis.extent; ++n) next.push_back(start + static_cast<int64_t>(n) * axis.dst_stride);
      }
      starts = next;
    }
    std::vector<bool> touched(size);
    bool fits = true;
    for (const int64_t start : starts) {
      for (int64_t at = start; at < start + static_cast<int64_t>(element); ++at) {
        if (at < 0 || at >= static_cast<int64_t>(size)) {
          fits = false;
        } else {
          touched[static_cast<size_t>(at)] = true;
        }
      }
    }
    MR_EXPECT_EQ(StridesFit(axes, &hal::StridedAxis::dst_stride, element, offset, size), fits);
    if (!fits) continue;
    ++fitting;
    const bool is_all = std::find(touched.begin(), touched.end(), false) == touched.end();
    // If an element is written twice, `CoversAll` may return false.
    const bool is_exact = is_all && axes.elements * element == size;
    MR_EXPECT_EQ(CoversAll(axes, element, size), is_exact);
    covering += is_exact ? 1 : 0;
  }
  MR_EXPECT(covering > 100 && fitting > 1000);
}

}  // namespace
}  // namespace millrace::testing
