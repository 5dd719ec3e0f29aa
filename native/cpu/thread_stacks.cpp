#include "cpu/thread_stacks.h"

#include <sys/mman.h>
#include <unistd.h>

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
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t n = count_; n < made; ++n) {
    std::byte* const guard = start + n * bytes;
    if (madvise(guard, page, guard_advice_) == 0) continue;
    if (n % kStacksPerGuard != 0 && protected_of_all.load(std::memory_order_relaxed) >= kMostProtected) continue;
    if (mprotect(guard, page, PROT_NONE) != 0) continue;
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
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const uint64_t lower = (bytes_ - kKeptBytes) / page * page;
  unsigned char is_used = 0;
  if (mincore(first_ + looked_at_ * bytes_ + lower - page, page, &is_used) != 0 || (is_used & 1) == 0) return;
  for (uint64_t n = 0; n < count_; ++n) madvise(first_ + n * bytes_ + page, lower - page, MADV_DONTNEED);
}

}  // namespace millrace::cpu
