#include "cpu/strided.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace millrace::cpu {
namespace {

// About 10 us of work.
constexpr uint64_t kTileElements = 16 << 10;
// Side of a transposition's tile, which fills half of the L1 cache.
constexpr uint64_t TransposedTile(uint32_t element_bytes) {
  return element_bytes == 8 ? 32 : 64;
}

struct Tile {
  std::byte* dst;
  const std::byte* src;
  uint64_t rows;
  uint64_t columns;
  hal::StridedAxis row;  // Axes of the whole shape.
  hal::StridedAxis column;
};

// Whether the source is denser along the rows' axis than along the columns'. A single row is not transposed.
bool IsTransposed(const hal::StridedAxis& row, const hal::StridedAxis& column) {
  return row.extent > 1 && std::abs(row.src_stride) < std::abs(column.src_stride);
}

// With a compile-time step the loop is twice as fast.
template <typename T>
inline void CopyRow(std::byte* dst, const std::byte* src, uint64_t count, int64_t dst_step, int64_t src_step) {
  for (uint64_t i = 0; i < count; ++i, dst += dst_step, src += src_step) std::memcpy(dst, src, sizeof(T));
}

template <typename T>
void CopyTile(const Tile& tile) {
  constexpr int64_t kUnit = sizeof(T);
  std::byte* dst = tile.dst;
  const std::byte* src = tile.src;
  const int64_t dst_step = tile.column.dst_stride;
  const int64_t src_step = tile.column.src_stride;
  for (uint64_t row = 0; row < tile.rows; ++row, dst += tile.row.dst_stride, src += tile.row.src_stride) {
    if (dst_step != kUnit) {
      CopyRow<T>(dst, src, tile.columns, dst_step, src_step);
    } else if (src_step != kUnit) {
      CopyRow<T>(dst, src, tile.columns, kUnit, src_step);
    } else {
      std::memcpy(dst, src, tile.columns * sizeof(T));
    }
  }
}

// Uses a local buffer, because the columns of a large array are often a power of two apart, which the cache maps to few
// lines. Reads the source along its rows, and writes the destination along its own.
template <typename T>
void TransposeTile(const Tile& tile) {
  constexpr uint64_t kSide = TransposedTile(sizeof(T));
  T elements[kSide * kSide];
  const std::byte* src = tile.src;
  for (uint64_t column = 0; column < tile.columns; ++column, src += tile.column.src_stride) {
    auto* place = reinterpret_cast<std::byte*>(elements + column * kSide);
    if (tile.row.src_stride == sizeof(T)) {
      std::memcpy(place, src, tile.rows * sizeof(T));
    } else {
      CopyRow<T>(place, src, tile.rows, sizeof(T), tile.row.src_stride);
    }
  }
  std::byte* dst = tile.dst;
  for (uint64_t row = 0; row < tile.rows; ++row, dst += tile.row.dst_stride) {
    const auto* place = reinterpret_cast<const std::byte*>(elements + row);
    if (tile.column.dst_stride == sizeof(T)) {
      CopyRow<T>(dst, place, tile.columns, sizeof(T), kSide * sizeof(T));
    } else {
      CopyRow<T>(dst, place, tile.columns, tile.column.dst_stride, kSide * sizeof(T));
    }
  }
}

template <typename T>
void FillTile(const Tile& tile, uint64_t pattern) {
  const T element = static_cast<T>(pattern);
  std::byte* dst = tile.dst;
  for (uint64_t row = 0; row < tile.rows; ++row, dst += tile.row.dst_stride) {
    if (tile.column.dst_stride == sizeof(T)) {
      RunFill({dst, sizeof(T), pattern, tile.columns});
    } else {
      std::byte* place = dst;
      for (uint64_t i = 0; i < tile.columns; ++i, place += tile.column.dst_stride) {
        std::memcpy(place, &element, sizeof(T));
      }
    }
  }
}

template <typename T>
void RunTile(const Tile& tile, const std::optional<uint64_t>& pattern) {
  if (pattern) {
    FillTile<T>(tile, *pattern);
  } else if (IsTransposed(tile.row, tile.column)) {
    TransposeTile<T>(tile);
  } else {
    CopyTile<T>(tile);
  }
}

}  // namespace

StridedShape::StridedShape(std::byte* dst, const std::byte* src, uint32_t element_bytes,
                           std::span<const hal::StridedAxis> axes)
    : dst_(dst), src_(src), element_bytes_(element_bytes) {
  MR_CHECK(element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8);
  MR_CHECK(axes.size() <= protocol::kMaxRank);
  for (const hal::StridedAxis& axis : axes) Take(axis);
  std::sort(axes_.begin(), axes_.begin() + rank_,
            [](const auto& a, const auto& b) { return a.dst_stride > b.dst_stride; });
  Merge();
  ChooseRows();
}

uint64_t StridedShape::element_count() const {
  uint64_t count = 1;
  for (const hal::StridedAxis& axis : axes()) count *= axis.extent;
  return count;
}

bool StridedShape::IsRun() const {
  if (rank_ == 0) return true;
  return rank_ == 1 && axes_[0].dst_stride == element_bytes_ &&
         (src_ == nullptr || axes_[0].src_stride == element_bytes_);
}

void StridedShape::Take(hal::StridedAxis axis) {
  MR_CHECK(axis.extent > 0);
  if (axis.extent == 1) return;
  if (src_ == nullptr) axis.src_stride = 0;
  if (axis.dst_stride < 0) {
    const auto last = static_cast<int64_t>(axis.extent - 1);
    dst_ += last * axis.dst_stride;
    if (src_ != nullptr) src_ += last * axis.src_stride;
    axis.dst_stride = -axis.dst_stride;
    axis.src_stride = -axis.src_stride;
  }
  axes_[rank_++] = axis;
}

// Merges two axes if a step of one is as long as the whole other axis.
void StridedShape::Merge() {
  if (rank_ == 0) return;
  uint32_t kept = 0;
  for (uint32_t i = 1; i < rank_; ++i) {
    const hal::StridedAxis& inner = axes_[i];
    hal::StridedAxis& outer = axes_[kept];
    const auto extent = static_cast<int64_t>(inner.extent);
    if (outer.dst_stride == extent * inner.dst_stride && outer.src_stride == extent * inner.src_stride) {
      outer = {outer.extent * inner.extent, inner.dst_stride, inner.src_stride};
    } else {
      axes_[++kept] = inner;
    }
  }
  rank_ = kept + 1;
}

// The last axis is the columns. The rows are the source's densest axis if that is another one, else the axis before.
void StridedShape::ChooseRows() {
  if (rank_ < 3) return;
  const auto columns = axes_.begin() + rank_ - 1;
  const auto densest = std::min_element(axes_.begin(), columns, [](const auto& a, const auto& b) {
    return std::abs(a.src_stride) < std::abs(b.src_stride);
  });
  if (std::abs(densest->src_stride) < std::abs(columns->src_stride)) std::rotate(densest, densest + 1, columns);
}

StridedSweep::StridedSweep(const StridedShape& shape, std::optional<uint64_t> pattern, int32_t priority)
    : StridedSweep(shape, Cut(shape), pattern, priority) {}

StridedSweep::StridedSweep(const StridedShape& shape, const Tiling& tiling, std::optional<uint64_t> pattern,
                           int32_t priority)
    : ParallelItem(tiling.outer * tiling.down() * tiling.across(), priority),
      shape_(shape),
      tiling_(tiling),
      pattern_(pattern) {}

StridedSweep::Tiling StridedSweep::Cut(const StridedShape& shape) {
  const auto axes = shape.axes();
  Tiling tiling{};
  tiling.columns = axes.empty() ? 1 : axes.back().extent;
  tiling.rows = axes.size() < 2 ? 1 : axes[axes.size() - 2].extent;
  tiling.outer = shape.element_count() / (tiling.columns * tiling.rows);
  const uint64_t side = TransposedTile(shape.element_bytes());
  const bool is_transposed = axes.size() >= 2 && IsTransposed(axes[axes.size() - 2], axes.back());
  tiling.tile_columns = std::min(tiling.columns, is_transposed ? side : kTileElements);
  tiling.tile_rows = std::min(tiling.rows, is_transposed ? side : kTileElements / tiling.tile_columns);
  return tiling;
}

bool StridedSweep::IsLight() const {
  return shape_.element_count() * shape_.element_bytes() <= kLightBytes;
}

void StridedSweep::RunBlocks(uint64_t first, uint64_t end) {
  const auto axes = shape_.axes();
  const hal::StridedAxis none;
  Tile tile{};
  tile.column = axes.empty() ? none : axes.back();
  tile.row = axes.size() < 2 ? none : axes[axes.size() - 2];
  for (uint64_t block = first; block < end; ++block) {
    uint64_t rest = block;
    const uint64_t column = rest % tiling_.across() * tiling_.tile_columns;
    rest /= tiling_.across();
    const uint64_t row = rest % tiling_.down() * tiling_.tile_rows;
    rest /= tiling_.down();
    const auto offset = [&](int64_t hal::StridedAxis::*stride) {
      int64_t bytes =
          static_cast<int64_t>(row) * (tile.row.*stride) + static_cast<int64_t>(column) * (tile.column.*stride);
      uint64_t index = rest;
      for (size_t i = axes.size(); i-- > 2;) {
        const hal::StridedAxis& axis = axes[i - 2];
        bytes += static_cast<int64_t>(index % axis.extent) * (axis.*stride);
        index /= axis.extent;
      }
      return bytes;
    };
    tile.rows = std::min(tiling_.tile_rows, tiling_.rows - row);
    tile.columns = std::min(tiling_.tile_columns, tiling_.columns - column);
    tile.dst = shape_.dst() + offset(&hal::StridedAxis::dst_stride);
    tile.src = shape_.src() == nullptr ? nullptr : shape_.src() + offset(&hal::StridedAxis::src_stride);
    switch (shape_.element_bytes()) {
      case 1:
        RunTile<uint8_t>(tile, pattern_);
        break;
      case 2:
        RunTile<uint16_t>(tile, pattern_);
        break;
      case 4:
        RunTile<uint32_t>(tile, pattern_);
        break;
      default:
        RunTile<uint64_t>(tile, pattern_);
    }
  }
}

}  // namespace millrace::cpu
