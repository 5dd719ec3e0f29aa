// Parameters of a strided kernel: plain data with the same layout on host and device. cuda/strided.cpp fills it.
#pragma once

namespace millrace::cuda {

inline constexpr unsigned kStridedAxes = 8;

/// Addresses and strides are in bytes. Axis 0 is the fastest one, the reverse of the public order.
struct StridedPlan {
  unsigned long long dst = 0;
  unsigned long long src = 0;      // Only for copies.
  unsigned long long pattern = 0;  // Only for fills.
  unsigned long long count = 1;    // Total number of elements.
  unsigned element_bytes = 1;      // 1, 2, 4 or 8; copies also use 16.
  unsigned rank = 0;
  unsigned long long extents[kStridedAxes] = {};
  long long dst_strides[kStridedAxes] = {};
  long long src_strides[kStridedAxes] = {};
  /// Divides a number below 2^31 by the extent: (high word of number * factor + number) >> shift.
  unsigned factors[kStridedAxes] = {};
  unsigned shifts[kStridedAxes] = {};
};

}  // namespace millrace::cuda
