#include "cpu/address_space.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
namespace millrace::cpu {
namespace {

struct Size {
  uint64_t guard;  // On each side of a region.
  uint64_t room;
};
// An index of 32 bits reaches 32 GiB in an array of float4. Inaccessible pages cost nothing; the smaller sizes are for
// systems that limit the address space.
constexpr Size kSizes[] = {
    {1ull << 40, 64ull << 30}, {32ull << 30, 64ull << 30}, {1ull << 30, 4ull << 30}, {1ull << 20, 64ull << 20}};
constexpr size_t kLastSize = std::size(kSizes) - 1;

bool IsAddressSpaceLimited() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void* MapInaccessible(void* address, uint64_t bytes, int flags) {
  return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

}  // namespace

uint64_t ToPages(uint64_t bytes) {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return RoundUp(bytes, page);
}

AddressSpace::~AddressSpace() {
  for (const Range& region : regions_) munmap(reinterpret_cast<void*>(region.start), region.bytes);
}

std::byte* AddressSpace::Map(uint64_t bytes, uint64_t alignment, uint64_t gap) {
  bytes = ToPages(bytes);
  uintptr_t start = 0;
  {
    std::lock_guard lock(mutex_);
    start = Take(bytes, alignment, gap);
    if (start == 0 && Reserve(bytes + alignment + gap)) start = Take(bytes, alignment, gap);
  }
  if (start == 0) return nullptr;
  auto* address = reinterpret_cast<std::byte*>(start);
  if (mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0) return address;
  Give(start - gap, bytes + gap);
  return nullptr;
}

void AddressSpace::Unmap(std::byte* address, uint64_t bytes, uint64_t gap) {
  bytes = ToPages(bytes);
  // Frees the pages as well. A process with too many mappings cannot split this one; then only the pages are freed.
  if (MapInaccessible(address, bytes, MAP_FIXED) == MAP_FAILED) madvise(address, bytes, MADV_DONTNEED);
  Give(reinterpret_cast<uintptr_t>(address) - gap, bytes + gap);
}

bool AddressSpace::Contains(uintptr_t address) const {
  std::lock_guard lock(mutex_);
  return std::any_of(regions_.begin(), regions_.end(),
                     [&](const Range& region) { return address - region.start < region.bytes; });
}

uintptr_t AddressSpace::Take(uint64_t bytes, uint64_t alignment, uint64_t gap) {
  auto at = unused_.lower_bound(next_);
  for (size_t n = unused_.size(); n > 0; --n, ++at) {
    if (at == unused_.end()) at = unused_.begin();
    const auto [first, length] = *at;
    const uintptr_t start = RoundUp(first + gap, alignment);
    if (start + bytes > first + length) continue;
    unused_.erase(at);
    if (start - gap > first) unused_[first] = start - gap - first;
    next_ = start + bytes;
    if (next_ < first + length) unused_[next_] = first + length - next_;
    return start;
  }
  return 0;
}

void AddressSpace::Give(uintptr_t start, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto after = unused_.lower_bound(start);
  if (after != unused_.end() && after->first == start + bytes) {
    bytes += after->second;
    after = unused_.erase(after);
  }
  if (after != unused_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == start) {
      before->second += bytes;
      return;
    }
  }
  unused_.emplace_hint(after, start, bytes);
}

bool AddressSpace::Reserve(uint64_t bytes) {
  for (size_t n = IsAddressSpaceLimited() ? kLastSize : 0; n <= kLastSize; ++n) {
    const auto [guard, room] = kSizes[n];
    const uint64_t inside = ToPages(std::max({room, bytes, n == kLastSize ? 0 : 2 * expected_bytes_}));
    void* mapped = MapInaccessible(nullptr, inside + 2 * guard, 0);
    if (mapped == MAP_FAILED) continue;
    const auto start = reinterpret_cast<uintptr_t>(mapped);
    regions_.push_back({start, inside + 2 * guard});
    unused_[start + guard] = inside;
    return true;
  }
  return false;
}

std::byte* GuardedPages::Reserve(uint64_t bytes, uint64_t alignment) {
  const uint64_t wanted = RoundUp(bytes, alignment);
  if (wanted > bytes_) {
    const uint64_t room = ToPages(wanted);
    const uint64_t guard = kSizes[IsAddressSpaceLimited() ? kLastSize : kLastSize - 1].guard;
    void* mapped = MapInaccessible(nullptr, room + 2 * guard, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto* first = static_cast<std::byte*>(mapped) + guard;
    if (mprotect(first, room, PROT_READ | PROT_WRITE) != 0) {
      munmap(mapped, room + 2 * guard);
      return nullptr;
    }
    Unmap();
    first_ = first;
    bytes_ = room;
    guard_ = guard;
  }
  return first_ + bytes_ - wanted;
}

void GuardedPages::Unmap() const {
  if (first_ != nullptr) munmap(first_ - guard_, bytes_ + 2 * guard_);
}

}  // namespace millrace::cpu
