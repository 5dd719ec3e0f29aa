#include "cpu/thread_stacks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "cpu/host_info.h"

namespace millrace::cpu {
namespace {

// A process may have 65,530 mappings. Each guard that is one adds two.
constexpr uint32_t kMostProtected = 20'000;
std::atomic<uint32_t> protected_of_all{0};
// Beyond that number, a guard is below this many stacks.
constexpr uint32_t kStacksPerGuard = 16;

// So that blocks of a few sizes do not each make some.
constexpr uint64_t kFewest = 64;

// So much of the top of each stack is always accessible, and keeps its memory.
constexpr uint64_t kKeptBytes = 32 << 10;
constexpr int kRemoveGuard = 103;

// A deep stack grows by so much.
constexpr uint64_t kStep = 64 << 10;
// A thread keeps so much for deep calls.
constexpr uint64_t kKeptDeepBytes = 4 << 20;
std::atomic<uint64_t> deep_of_all{0};
std::atomic<uint64_t> most_deep{0};

}  // namespace

uint64_t ThreadStacks::MostDeepBytes() {
  if (most_deep.load(std::memory_order_relaxed) == 0) LimitDeepBytes(MemoryOfHost().total / 2);
  return most_deep.load(std::memory_order_relaxed);
}

void ThreadStacks::LimitDeepBytes(uint64_t bytes) {
  most_deep.store(bytes, std::memory_order_relaxed);
}

ThreadStacks::~ThreadStacks() {
  protected_of_all.fetch_sub(protected_, std::memory_order_relaxed);
  deep_of_all.fetch_sub(deep_, std::memory_order_relaxed);
}

uint64_t ThreadStacks::Rounded(uint32_t count) {
  return std::max(kFewest, std::bit_ceil(uint64_t{count}));
}

uint64_t ThreadStacks::ClosedBytes() const {
  return bytes_ < kKeptBytes + page_ ? page_ : (bytes_ - kKeptBytes) / page_ * page_;
}

void ThreadStacks::Close(uint64_t number) {
  std::byte* const lowest = first_ + number * bytes_;
  const uint64_t wanted = ClosedBytes();
  if (madvise(lowest, wanted, guard_advice_) != 0) {
    const bool had = closed_[number] > 0;
    if (!had && number % kStacksPerGuard != 0 && protected_of_all.load(std::memory_order_relaxed) >= kMostProtected)
      return;
    madvise(lowest + page_, wanted - page_, MADV_DONTNEED);
    if (mprotect(lowest, wanted, PROT_NONE) != 0) return;
    if (!had) {
      ++protected_;
      protected_of_all.fetch_add(1, std::memory_order_relaxed);
    }
  }
  closed_[number] = static_cast<uint32_t>(wanted);
}

std::byte* ThreadStacks::Take(std::byte* start, uint32_t count, uint64_t bytes) {
  if (count_ > 0 && bytes != bytes_) return nullptr;
  if (count <= count_) {
    Trim();
    TrimOpen();
    return first_;
  }
  // The signal handler must not be the first to ask.
  (void)MostDeepBytes();
  const uint64_t made = Rounded(count);
  std::byte* const added = start + count_ * bytes;
  const uint64_t added_bytes = (made - count_) * bytes;
  if (mprotect(added, added_bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
  // Stacks with huge pages would take all of their memory at once.
  madvise(added, added_bytes, MADV_NOHUGEPAGE);
  page_ = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  first_ = start;
  bytes_ = bytes;
  closed_.resize(made);
  for (uint64_t n = count_; n < made; ++n) Close(n);
  count_ = made;
  return first_;
}

ThreadStacks::Deepened ThreadStacks::Deepen(uintptr_t address, bool is_needed) {
  if (!Contains(address)) return Deepened::kNoStack;
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(first_);
  const uint64_t number = offset / bytes_;
  const uint64_t at = offset % bytes_;
  const uint64_t closed = closed_[number];
  if (at < page_ || at >= closed) return Deepened::kNoStack;
  const uint64_t left = std::max(page_, at / kStep * kStep);
  const uint64_t more = closed - left;
  const uint64_t before = deep_of_all.fetch_add(more, std::memory_order_relaxed);
  std::byte* const from = first_ + number * bytes_ + left;
  const bool has_room = is_needed || before + more <= most_deep.load(std::memory_order_relaxed);
  if (!has_room || mprotect(from, more, PROT_READ | PROT_WRITE) != 0) {
    deep_of_all.fetch_sub(more, std::memory_order_relaxed);
    return Deepened::kNoMemory;
  }
  madvise(from, more, kRemoveGuard);
  closed_[number] = static_cast<uint32_t>(left);
  deep_ += more;
  return Deepened::kYes;
}

void ThreadStacks::Trim() {
  if (deep_ <= kKeptDeepBytes) return;
  for (uint64_t n = 0; n < count_; ++n) {
    if (closed_[n] > 0 && closed_[n] < ClosedBytes()) Close(n);
  }
  deep_of_all.fetch_sub(deep_, std::memory_order_relaxed);
  deep_ = 0;
}

// Of the stacks without guards of their own, if the next one shows deep calls.
void ThreadStacks::TrimOpen() {
  looked_at_ = (looked_at_ + 1) % count_;
  if (closed_[looked_at_] > 0) return;
  const uint64_t lower = ClosedBytes();
  unsigned char is_used = 0;
  if (mincore(first_ + looked_at_ * bytes_ + lower - page_, page_, &is_used) != 0 || (is_used & 1) == 0) return;
  for (uint64_t n = 0; n < count_; ++n) {
    if (closed_[n] == 0) madvise(first_ + n * bytes_ + page_, lower - page_, MADV_DONTNEED);
  }
}

}  // namespace millrace::cpu
