// Textures and surfaces, as the runtime gives them to a backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/protocol.gen.h"

namespace millrace::hal {

/// Bytes of one element.
[[nodiscard]] inline uint64_t ElementBytes(const protocol::TextureShape& shape) {
  using protocol::TextureFormat;
  switch (static_cast<TextureFormat>(shape.format)) {
    case TextureFormat::kU8:
    case TextureFormat::kI8:
      return shape.channels;
    case TextureFormat::kU16:
    case TextureFormat::kI16:
    case TextureFormat::kF16:
      return 2ull * shape.channels;
    default:
      return 4ull * shape.channels;
  }
}
/// Rows of all layers: 1 in a texture of one dimension.
[[nodiscard]] inline uint64_t RowCount(const protocol::TextureShape& shape) {
  return uint64_t{shape.height == 0 ? 1 : shape.height} * (shape.depth == 0 ? 1 : shape.depth);
}
[[nodiscard]] inline uint64_t RowBytes(const protocol::TextureShape& shape) {
  return shape.width * ElementBytes(shape);
}

/// Bytes of all elements, without gaps.
[[nodiscard]] inline uint64_t TotalBytes(const protocol::TextureShape& shape) {
  return RowBytes(shape) * RowCount(shape);
}

/// A copy of all elements.
struct ArrayCopy {
  std::byte* array = nullptr;   // Memory::address of Device::AllocateArray.
  std::byte* memory = nullptr;  // No gaps between rows.
  protocol::TextureShape shape{};
  bool is_upload = false;
};

struct TextureRequest {
  std::byte* address = nullptr;  // Memory::address of Device::AllocateArray, or linear memory.
  uint64_t pitch = 0;            // Of linear memory, from row to row; 0 for an array.
  protocol::TextureShape shape{};
  protocol::TextureFilter filter = protocol::TextureFilter::kPoint;
  protocol::TextureAddress address_modes[3] = {};
  uint32_t flags = 0;  // TextureFlags.

  [[nodiscard]] bool Has(protocol::TextureFlag flag) const { return (flags & static_cast<uint32_t>(flag)) != 0; }
};

}  // namespace millrace::hal
