// Properties of a device: plain data that a backend fills during enumeration.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/protocol.gen.h"

namespace millrace::hal {

/// Where a library was found.
struct LibraryInfo {
  std::string name;     // As its vendor writes it: cuBLASLt.
  std::string version;  // 12.8.4
  std::string path;
};

struct DeviceInfo {
  uint32_t ordinal = 0;
  std::string name;
  uint64_t total_memory_bytes = 0;
  uint32_t compute_major = 0;  // 0.0 on the CPU device.
  uint32_t compute_minor = 0;
#define MR_MEMBER(member, name, attribute, on_cpu) uint32_t member = 0;
  MR_DEVICE_PROPERTIES(MR_MEMBER)
#undef MR_MEMBER
  uint32_t max_block[3] = {0, 0, 0};
  uint32_t max_grid[3] = {0, 0, 0};
  uint32_t max_parameter_bytes = 0;  // Of all parameters of a kernel.
  /// The largest textures: width in one dimension, width and height in two, width, height and depth in three; the same
  /// for surfaces; then for linear memory the width in one dimension, the width and height in two, and the pitch.
  std::array<uint32_t, 16> texture_limits{};
  int32_t least_priority = 0;
  int32_t greatest_priority = 0;  // Smaller is more urgent, as in CUDA.
  /// Those of an open device, as far as they are known at once.
  std::vector<LibraryInfo> libraries;
};

/// A backend's devices, or the reason why it has none.
struct BackendReport {
  std::string name;
  std::vector<DeviceInfo> devices;
  std::string reason;             // Empty when there are devices.
  std::vector<std::string> help;  // What the user can do.
  std::string driver_version;     // Empty on the CPU device.
};

}  // namespace millrace::hal
