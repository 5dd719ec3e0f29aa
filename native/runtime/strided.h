// Checks the axes of a strided record before anybody computes an address from them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "hal/hal.h"
#include "runtime/record_reader.h"

namespace millrace {

/// The axes of one record, and how many elements they make.
struct StridedAxes {
  std::array<hal::StridedAxis, protocol::kMaxRank> axes;
  uint32_t rank = 0;
  uint64_t elements = 0;

  [[nodiscard]] std::span<const hal::StridedAxis> span() const { return {axes.data(), rank}; }
};

/// Reads `rank` axes. False when there are none or too many, when one is empty, when a stride is no multiple of the
/// element, or when the count of elements overflows.
[[nodiscard]] bool ReadAxes(RecordReader& reader, uint32_t rank, uint32_t element_bytes, StridedAxes& axes);

/// Which of an axis's strides.
using Stride = int64_t hal::StridedAxis::*;

/// True when every byte of every element, from the one at `offset` on, lies inside `size` bytes. Without overflow.
[[nodiscard]] bool StridesFit(const StridedAxes& axes, Stride stride, uint32_t element_bytes, uint64_t offset,
                              uint64_t size);

/// True when a write through the destination strides, which fits, leaves no byte of `size` as it was.
[[nodiscard]] bool CoversAll(const StridedAxes& axes, uint32_t element_bytes, uint64_t size);

}  // namespace millrace
