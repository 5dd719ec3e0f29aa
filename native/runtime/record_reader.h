// Reads records from unchecked bytes. Every access is checked against the record's size, and the size against the
// available bytes, so a malformed record is an error and never a read out of bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "protocol/protocol.gen.h"

namespace millrace {

/// True when [offset, offset + bytes) lies inside `size`, without overflow.
constexpr bool Fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}
constexpr bool IsElementSize(uint32_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// The header, or false when the bytes cannot be one whole record.
  [[nodiscard]] static bool ReadHeader(std::span<const std::byte> bytes, protocol::RecordHeader& header) {
    if (bytes.size() < sizeof(header)) return false;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return header.size >= sizeof(header) && header.size % 8 == 0 && header.size <= bytes.size() &&
           header.size <= protocol::kMaxRecordBytes && header.stream < protocol::kMaxStreams;
  }

  /// Copies the next `T`, or returns false if the record ends before it.
  template <typename T>
  [[nodiscard]] bool Read(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace millrace
