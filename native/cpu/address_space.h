// Address space of a CPU device's arrays: regions of their own, with inaccessible pages on both sides, in which nothing
// of the host lies. So a kernel that indexes past an array reaches other arrays at most, or is stopped by a page fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace millrace::cpu {

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t step) {
  return (bytes + step - 1) / step * step;
}

/// Up to the end of a page.
[[nodiscard]] uint64_t ToPages(uint64_t bytes);

/// Thread: any.
class AddressSpace {
 public:
  /// A region has room for `expected_bytes` at least. If all regions are full, another one is reserved.
  explicit AddressSpace(uint64_t expected_bytes) : expected_bytes_(expected_bytes) {}
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// `bytes`, up to the end of a page, of zeros from a multiple of `alignment`, behind at least `gap` bytes that are
  /// inaccessible until Unmap. Null if the system refuses. Addresses are reused as late as possible, so that accesses
  /// to unmapped memory fault for long.
  [[nodiscard]] std::byte* Map(uint64_t bytes, uint64_t alignment, uint64_t gap = 0);
  /// The arguments and the result of Map.
  void Unmap(std::byte* address, uint64_t bytes, uint64_t gap = 0);
  [[nodiscard]] bool Contains(uintptr_t address) const;

 private:
  struct Range {
    uintptr_t start;
    uint64_t bytes;
  };
  /// Takes `bytes` at an aligned address from the free ranges; 0 if no range has room. Needs `mutex_`.
  [[nodiscard]] uintptr_t Take(uint64_t bytes, uint64_t alignment, uint64_t gap);
  void Give(uintptr_t start, uint64_t bytes);
  /// Needs `mutex_`.
  [[nodiscard]] bool Reserve(uint64_t bytes);

  const uint64_t expected_bytes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Range> regions_;            // With the inaccessible pages on both sides.
  std::map<uintptr_t, uint64_t> unused_;  // Start and bytes.
  uintptr_t next_ = 0;                    // The search for a range begins here.
};

/// Bytes for one use at a time, which end where inaccessible pages begin. The same lies before them.
class GuardedPages {
 public:
  GuardedPages() = default;
  ~GuardedPages() { Unmap(); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  /// At least `bytes`, to a multiple of `alignment`; what an earlier call returned is no longer valid. Null if the
  /// system refuses.
  [[nodiscard]] std::byte* Reserve(uint64_t bytes, uint64_t alignment);
  /// With the inaccessible pages.
  [[nodiscard]] bool Contains(uintptr_t address) const {
    return address - (reinterpret_cast<uintptr_t>(first_) - guard_) < bytes_ + 2 * guard_;
  }

 private:
  void Unmap() const;

  std::byte* first_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t guard_ = 0;
};

}  // namespace millrace::cpu
