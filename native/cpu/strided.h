// Strided copies and fills.
//
// Axes are normalised first: axes of one element are dropped, destination strides become positive, the longest
// destination stride comes first, and contiguous axes are merged. So a transposed copy of a transposed array becomes
// one range again. The rest is split into tiles over two axes: the destination's densest (columns) and, for a
// transposition, the source's densest (rows). A transposition's tile fits in the L1 cache, and any number of tiles may
// run concurrently.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cpu/parallel_copy.h"
#include "cpu/parallel_item.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// Positions and strides of the elements in normalised form. A fill has no source.
class StridedShape {
 public:
  StridedShape(std::byte* dst, const std::byte* src, uint32_t element_bytes, std::span<const hal::StridedAxis> axes);

  [[nodiscard]] std::byte* dst() const { return dst_; }
  [[nodiscard]] const std::byte* src() const { return src_; }
  [[nodiscard]] uint32_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] std::span<const hal::StridedAxis> axes() const { return {axes_.data(), rank_}; }
  [[nodiscard]] uint64_t element_count() const;
  /// Whether both sides are contiguous; a fill checks only its destination.
  [[nodiscard]] bool IsRun() const;

 private:
  void Take(hal::StridedAxis axis);
  void Merge();
  void ChooseRows();

  std::byte* dst_;
  const std::byte* src_;
  const uint32_t element_bytes_;
  std::array<hal::StridedAxis, protocol::kMaxRank> axes_;
  uint32_t rank_ = 0;
};

class StridedSweep final : public ParallelItem {
 public:
  /// A copy or, with a pattern, a fill.
  StridedSweep(const StridedShape& shape, std::optional<uint64_t> pattern, int32_t priority);
  [[nodiscard]] bool IsLight() const override;

 private:
  struct Tiling {
    uint64_t rows;  // Of the shape.
    uint64_t columns;
    uint64_t tile_rows;
    uint64_t tile_columns;
    uint64_t outer;  // Number of elements along the other axes.
    [[nodiscard]] uint64_t down() const { return (rows + tile_rows - 1) / tile_rows; }
    [[nodiscard]] uint64_t across() const { return (columns + tile_columns - 1) / tile_columns; }
  };
  StridedSweep(const StridedShape& shape, const Tiling& tiling, std::optional<uint64_t> pattern, int32_t priority);
  static Tiling Cut(const StridedShape& shape);
  void RunBlocks(uint64_t first, uint64_t end) override;

  const StridedShape shape_;
  const Tiling tiling_;
  const std::optional<uint64_t> pattern_;
};

}  // namespace millrace::cpu
