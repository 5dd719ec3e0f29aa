// Checks the axes of a strided record before an address is computed from them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "hal/hal.h"
#include "runtime/record_reader.h"

namespace millrace {

/// The axes of one record, and their number of elements.
struct StridedAxes {
  std::array<hal::StridedAxis, protocol::kMaxRank> axes;
  uint32_t rank = 0;
  uint64_t elements = 0;

  [[nodiscard]] std::span<const hal::StridedAxis> span() const { return {axes.data(), rank}; }
};

/// Reads `rank` axes. False if there are none or too many, if one is empty, if a stride is not a multiple of the
/// element size, or if the number of elements overflows.
[[nodiscard]] bool ReadAxes(RecordReader& reader, uint32_t rank, uint32_t element_bytes, StridedAxes& axes);

/// Selects one of an axis's two strides.
using Stride = int64_t hal::StridedAxis::*;

/// True if every byte of every element, from the one at `offset` on, lies inside `size` bytes. Handles overflow.
[[nodiscard]] bool StridesFit(const StridedAxes& axes, Stride stride, uint32_t element_bytes, uint64_t offset,
                              uint64_t size);

/// True if a write through the destination strides, which must fit, overwrites every byte of `size`.
[[nodiscard]] bool CoversAll(const StridedAxes& axes, uint32_t element_bytes, uint64_t size);

}  // namespace millrace
