// Checks the shapes of textures in records.
#pragma once

#include "hal/textures.h"

namespace millrace {

/// Whether all numbers are in their ranges, so that no size overflows: limits of devices are far below.
inline bool IsShape(const protocol::TextureShape& shape) {
  const uint32_t most_elements = shape.height == 0 ? 1u << 28 : 1u << 18;
  constexpr uint32_t kMostRows = 1u << 17;
  constexpr uint32_t kMostLayers = 1u << 14;
  const bool has_channels = shape.channels == 1 || shape.channels == 2 || shape.channels == 4;
  return shape.width >= 1 && shape.width <= most_elements && shape.height <= kMostRows && shape.depth <= kMostLayers &&
         (shape.depth == 0 || shape.height > 0) && has_channels &&
         shape.format <= static_cast<uint8_t>(protocol::TextureFormat::kF32);
}

}  // namespace millrace
