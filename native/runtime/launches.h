// The code that LAUNCH records of streams and LAUNCH records of graph nodes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hal/hal.h"
#include "runtime/failures.h"
#include "runtime/in_flight.h"
#include "runtime/record_reader.h"

namespace millrace {

/// A kernel that was built, or that could not be.
struct KernelEntry {
  std::shared_ptr<hal::Kernel> kernel;  // Null when it could not be built.
  bool is_checked = false;
  Status failure;
};

constexpr bool Reads(uint8_t access) {
  return (access & static_cast<uint8_t>(protocol::Access::kRead)) != 0;
}
constexpr bool Writes(uint8_t access) {
  return (access & static_cast<uint8_t>(protocol::Access::kWrite)) != 0;
}
/// Whether the kernel writes a part of the memory.
constexpr bool IsPart(uint8_t access) {
  return (access & static_cast<uint8_t>(protocol::Access::kPart)) != 0;
}
/// How a record uses memory with this access. `is_needed`: it fails if the memory has no contents.
constexpr Use UseOf(uint8_t access, bool is_needed) {
  if (is_needed) return Writes(access) ? Use::kReadWrite : Use::kRead;
  return IsPart(access) ? Use::kWrite : Use::kOverwrite;
}
constexpr bool IsCooperative(const protocol::LaunchRecord& record) {
  return (record.flags & static_cast<uint32_t>(protocol::LaunchFlag::kCooperative)) != 0;
}
/// Whether a BYTES entry names a parameter among `total` bytes behind the entries.
constexpr bool IsWideParam(const protocol::LaunchArg& arg, size_t total) {
  return arg.size != 0 && arg.value % sizeof(uint64_t) == 0 && Fits(arg.value, arg.size, total);
}
/// Whether a MEMBER entry names a pointer in the parameter.
constexpr bool IsMemberOf(const protocol::LaunchArg& arg, const hal::WideParam& wide) {
  return arg.size % sizeof(uint64_t) == 0 && Fits(arg.size, sizeof(uint64_t), wide.bytes);
}
/// The bytes behind the entries, in words.
[[nodiscard]] inline std::vector<uint64_t> WordsOf(std::span<const std::byte> bytes) {
  std::vector<uint64_t> words((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

/// A failure if the launch exceeds the kernel's limits. The owner could not check them, because the kernel was not
/// built yet at the call.
[[nodiscard]] std::optional<Failure> BeyondLimits(const protocol::LaunchRecord& record, hal::Kernel& kernel);

}  // namespace millrace
