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

/// Reads values one after another, and never beyond the end of the bytes.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Copies the next `T`, or returns false if the bytes end before it.
  template <typename T>
  [[nodiscard]] bool Read(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  /// The next `count` bytes, unless there are not so many.
  [[nodiscard]] std::optional<std::span<const std::byte>> Take(size_t count) {
    if (bytes_.size() - at_ < count) return std::nullopt;
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  [[nodiscard]] ByteReader FromStart() const { return ByteReader(bytes_); }
  /// What comes after the next `count` bytes, which stay to be read; empty if there is nothing.
  [[nodiscard]] std::span<const std::byte> Behind(size_t count) const {
    return bytes_.size() - at_ < count ? std::span<const std::byte>() : bytes_.subspan(at_ + count);
  }
  [[nodiscard]] bool IsAtEnd() const { return at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

/// Reads one record: its fields, then what follows them.
class RecordReader {
 public:
  explicit RecordReader(const Record& record)
      : header_(record.header), body_(record.bytes.subspan(sizeof(protocol::RecordHeader))) {}

  /// One that has read nothing of the record yet.
  [[nodiscard]] RecordReader FromStart() const { return RecordReader(header_, body_.FromStart()); }

  /// Copies the fields of a `T`, a record of the protocol, or returns false if the record is shorter. Comes first.
  template <typename T>
  [[nodiscard]] bool ReadFields(T& fields) {
    static_assert(std::is_trivially_copyable_v<T> && offsetof(T, header) == 0);
    constexpr size_t kHeader = sizeof(T::header);
    const auto behind_header = body_.Take(sizeof(T) - kHeader);
    if (!behind_header) return false;
    fields.header = header_;
    std::memcpy(reinterpret_cast<std::byte*>(&fields) + kHeader, behind_header->data(), behind_header->size());
    return true;
  }

  /// Copies the next `T` behind the fields, or returns false if the record ends before it.
  template <typename T>
  [[nodiscard]] bool Read(T& value) {
    return body_.Read(value);
  }
  /// What comes after the next `count` bytes behind the fields, which stay to be read; empty if there is nothing.
  [[nodiscard]] std::span<const std::byte> Behind(size_t count) const { return body_.Behind(count); }

 private:
  RecordReader(const protocol::RecordHeader& header, ByteReader body) : header_(header), body_(body) {}

  const protocol::RecordHeader header_;
  ByteReader body_;
};

}  // namespace millrace
