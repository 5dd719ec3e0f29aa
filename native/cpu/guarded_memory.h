// Memory between pages that nothing may access, for CPU devices that find accesses outside of arrays. These pages are
// like the redzones of AddressSanitizer, but the processor detects the access, by a page fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace millrace::cpu {

/// The memory of an array.
struct GuardedBlock {
  uintptr_t address = 0;
  uint64_t bytes = 0;
};

/// An access so far outside an array is known to be one.
inline constexpr uint64_t kArrayGuardBytes = 1 << 20;

/// Memory whose end is the start of an inaccessible page, or up to kGuardAlignment - 1 bytes before it. Null if the
/// system refuses it. Thread: any.
[[nodiscard]] std::byte* MapGuarded(uint64_t bytes);
/// `address` is a result of MapGuarded. Later accesses fault.
void UnmapGuarded(std::byte* address);
/// The memory that these inaccessible pages surround. Thread: any; not in a signal handler.
[[nodiscard]] std::optional<GuardedBlock> GuardedNear(uintptr_t address);

}  // namespace millrace::cpu
