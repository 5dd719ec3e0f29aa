#include "runtime/strided.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr uint64_t Magnitude(int64_t stride) {
  return stride < 0 ? uint64_t{0} - static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
}

}  // namespace

bool ReadAxes(RecordReader& reader, uint32_t rank, uint32_t element_bytes, StridedAxes& axes) {
  if (rank == 0 || rank > protocol::kMaxRank) return false;
  axes.rank = rank;
  axes.elements = 1;
  for (uint32_t n = 0; n < rank; ++n) {
    protocol::StridedAxis axis;
    if (!reader.Read(axis) || axis.extent == 0) return false;
    // Only a source may use one element several times.
    if (axis.extent > 1 && axis.dst_stride == 0) return false;
    if (Magnitude(axis.dst_stride) % element_bytes != 0 || Magnitude(axis.src_stride) % element_bytes != 0)
      return false;
    if (__builtin_mul_overflow(axes.elements, axis.extent, &axes.elements)) return false;
    axes.axes[n] = {.extent = axis.extent, .dst_stride = axis.dst_stride, .src_stride = axis.src_stride};
  }
  return true;
}

bool StridesFit(const StridedAxes& axes, Stride stride, uint32_t element_bytes, uint64_t offset, uint64_t size) {
  uint64_t below = 0;
  uint64_t above = element_bytes;
  for (const hal::StridedAxis& axis : axes.span()) {
    const int64_t step = axis.*stride;
    uint64_t reach = 0;
    if (__builtin_mul_overflow(axis.extent - 1, Magnitude(step), &reach)) return false;
    uint64_t& side = step < 0 ? below : above;
    if (__builtin_add_overflow(side, reach, &side)) return false;
  }
  return below <= offset && offset <= size && above <= size - offset;
}

bool CoversAll(const StridedAxes& axes, uint32_t element_bytes, uint64_t size) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(axes.elements, element_bytes, &bytes) || bytes != size) return false;
  // The elements have as many bytes as the memory, so they cover it if no two elements overlap. That is so if the axes,
  // sorted by stride, tile the range without a gap.
  const std::span<const hal::StridedAxis> all = axes.span();
  uint64_t tile = element_bytes;
  while (tile < size) {
    const auto is_next = [&](const hal::StridedAxis& axis) {
      return axis.extent > 1 && Magnitude(axis.dst_stride) == tile;
    };
    const auto next = std::find_if(all.begin(), all.end(), is_next);
    if (next == all.end()) return false;
    tile *= next->extent;
  }
  return true;
}

}  // namespace millrace
