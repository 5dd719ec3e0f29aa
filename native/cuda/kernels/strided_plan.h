// What a strided kernel is told: plain data that the host and the device lay out alike. Made by cuda/strided.cpp.
#pragma once

namespace millrace::cuda {

inline constexpr unsigned kStridedAxes = 8;

/// Addresses and strides are in bytes. Axis 0 is the fastest one, the other way round than in the contract.
struct StridedPlan {
  unsigned long long dst = 0;
  unsigned long long src = 0;      // Of a copy.
  unsigned long long pattern = 0;  // Of a fill.
  unsigned long long count = 1;    // Elements in all.
  unsigned element_bytes = 1;      // 1, 2, 4, 8, or 16, which copies alone use.
  unsigned rank = 0;
  unsigned long long extents[kStridedAxes] = {};
  long long dst_strides[kStridedAxes] = {};
  long long src_strides[kStridedAxes] = {};
  /// Division of a number below 2^31 by the extent: (high word of number * factor + number) >> shift.
  unsigned factors[kStridedAxes] = {};
  unsigned shifts[kStridedAxes] = {};
};

}  // namespace millrace::cuda
