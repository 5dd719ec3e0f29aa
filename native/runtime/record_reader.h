// Reads records. Submit checks a record's header. The channel's thread reads the header once, from the ring, and passes
// it on with the record; the issue functions read only what follows. RecordReader checks every read against the
// record's size, so a malformed record is an error and never a read out of bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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

/// A record with its header read. `bytes` is the whole record, and valid as long as the memory that it was read from.
struct Record {
  protocol::RecordHeader header;
  std::span<const std::byte> bytes;

  [[nodiscard]] protocol::Opcode opcode() const { return static_cast<protocol::Opcode>(header.opcode); }

  /// Nothing unless the unchecked bytes are one record with a valid header.
  [[nodiscard]] static std::optional<Record> Check(std::span<const std::byte> bytes) {
    protocol::RecordHeader header;
    if (bytes.size() < sizeof(header)) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const bool is_valid = header.size == bytes.size() && header.size >= sizeof(header) && header.size % 8 == 0 &&
                          header.size <= protocol::kMaxRecordBytes && header.stream < protocol::kMaxStreams;
    return is_valid ? std::optional<Record>({header, bytes}) : std::nullopt;
  }
  /// The first of several records that passed Check.
  [[nodiscard]] static Record First(std::span<const std::byte> bytes) {
    Record record;
    std::memcpy(&record.header, bytes.data(), sizeof(record.header));
    record.bytes = bytes.first(record.header.size);
    return record;
  }
};

class RecordReader {
 public:
  explicit RecordReader(const Record& record) : record_(record) {}

  /// Copies the fields of a `T`, a record of the protocol, or returns false if the record is shorter. Comes first.
  template <typename T>
  [[nodiscard]] bool ReadFields(T& fields) {
    static_assert(std::is_trivially_copyable_v<T> && offsetof(T, header) == 0);
    if (record_.bytes.size() < sizeof(T)) return false;
    constexpr size_t kHeader = sizeof(T::header);
    fields.header = record_.header;
    std::memcpy(reinterpret_cast<std::byte*>(&fields) + kHeader, record_.bytes.data() + kHeader, sizeof(T) - kHeader);
    at_ = sizeof(T);
    return true;
  }

  /// Copies the next `T` behind the fields, or returns false if the record ends before it.
  template <typename T>
  [[nodiscard]] bool Read(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (record_.bytes.size() - at_ < sizeof(T)) return false;
    std::memcpy(&value, record_.bytes.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

 private:
  const Record record_;
  size_t at_ = sizeof(protocol::RecordHeader);
};

}  // namespace millrace
