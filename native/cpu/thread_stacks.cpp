#include "cpu/thread_stacks.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>

namespace millrace::cpu {
namespace {

// A process may have 65,530 mappings. Each guard that is one adds two.
constexpr uint32_t kMostProtected = 20'000;
std::atomic<uint32_t> protected_of_all{0};
// Beyond that number, a guard is below this many stacks.
constexpr uint32_t kStacksPerGuard = 16;

// So that blocks of a few sizes do not each make some.
constexpr uint64_t kFewest = 64;

// So much of the top of each stack keeps its memory when Trim gives the rest back.
constexpr uint64_t kKeptBytes = 32 << 10;

/// qemu's emulation of processes takes any advice, also one that does not exist, and follows few. Linux looks at the
/// advice first.
bool TakesAnyAdvice() {
  static const bool takes = madvise(nullptr, 0, -1) == 0;
  return takes;
}

}  // namespace

ThreadStacks::~ThreadStacks() {
  protected_of_all.fetch_sub(protected_, std::memory_order_relaxed);
}

uint64_t ThreadStacks::Rounded(uint32_t count) {
  return std::max(kFewest, std::bit_ceil(uint64_t{count}));
}

std::byte* ThreadStacks::Take(std::byte* start, uint32_t count, uint64_t bytes) {
  if (count_ > 0 && bytes != bytes_) return nullptr;
  if (count <= count_) {
    Trim();
    return first_;
  }
  const uint64_t made = Rounded(count);
  std::byte* const added = start + count_ * bytes;
  const uint64_t added_bytes = (made - count_) * bytes;
  if (mprotect(added, added_bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
  // Stacks with huge pages would take all of their memory at once.
  madvise(added, added_bytes, MADV_NOHUGEPAGE);
  for (uint64_t n = count_; n < made; ++n) {
    std::byte* const guard = WholePage(start + n * bytes);
    if (!TakesAnyAdvice() && madvise(guard, page_, guard_advice_) == 0) continue;
    if (n % kStacksPerGuard != 0 && protected_of_all.load(std::memory_order_relaxed) >= kMostProtected) continue;
    if (mprotect(guard, page_, PROT_NONE) != 0) continue;
    ++protected_;
    protected_of_all.fetch_add(1, std::memory_order_relaxed);
  }
  first_ = start;
  bytes_ = bytes;
  count_ = made;
  return first_;
}

void ThreadStacks::Trim() {
  looked_at_ = (looked_at_ + 1) % count_;
  const auto kept_from = [this](uint64_t n) { return WholePage(first_ + (n + 1) * bytes_ - kKeptBytes - page_ + 1); };
  unsigned char is_used = 0;
  if (mincore(kept_from(looked_at_) - page_, 1, &is_used) != 0 || (is_used & 1) == 0) return;
  for (uint64_t n = 0; n < count_; ++n) {
    std::byte* const lowest = WholePage(first_ + n * bytes_) + page_;
    madvise(lowest, static_cast<size_t>(kept_from(n) - lowest), MADV_DONTNEED);
  }
}

std::byte* ThreadStacks::WholePage(std::byte* from) const {
  return from + -reinterpret_cast<uintptr_t>(from) % page_;
}

}  // namespace millrace::cpu
