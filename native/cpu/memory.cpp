#include "cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "cpu/guarded_memory.h"

namespace millrace::cpu {
namespace {

constexpr uint64_t kAlignment = 256;
// Smaller blocks come from malloc, which caches pages itself.
constexpr uint64_t kMapBytes = 64 << 10;
// Blocks of this size or more use whole huge pages: the first touch of 64 MiB took 25 ms instead of 36.
constexpr uint64_t kHugeBytes = 4 << 20;

// Four size classes per power of two, so that arrays of similar size share blocks. The surplus costs only address
// space, since untouched pages are never allocated.
constexpr uint64_t BlockBytes(uint64_t bytes) {
  if (bytes < kMapBytes) return RoundUp(std::max<uint64_t>(bytes, 1), kAlignment);
  return RoundUp(bytes, std::bit_floor(bytes) / 4);
}

std::byte* MapBlock(uint64_t block_bytes) {
  if (block_bytes < kMapBytes) return static_cast<std::byte*>(std::aligned_alloc(kAlignment, block_bytes));
  void* address =
      mmap(nullptr, block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  // Best effort: if the system refuses, the pages are small.
  if (block_bytes >= kHugeBytes) madvise(address, block_bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(address);
}

void UnmapBlock(std::byte* address, uint64_t block_bytes) {
  if (block_bytes < kMapBytes) {
    std::free(address);
  } else {
    munmap(address, block_bytes);
  }
}

}  // namespace

std::byte* Heap::Map(uint64_t bytes, uint64_t block_bytes) const {
  return is_guarded_ ? MapGuarded(bytes) : MapBlock(block_bytes);
}

void Heap::Unmap(const std::vector<Block>& blocks) const {
  for (const Block& block : blocks) {
    if (is_guarded_) {
      UnmapGuarded(block.address);
    } else {
      UnmapBlock(block.address, block.bytes);
    }
  }
}

Heap::~Heap() {
  for (auto& [block_bytes, addresses] : cache_) {
    for (std::byte* address : addresses) UnmapBlock(address, block_bytes);
  }
}

Result<std::unique_ptr<hal::Memory>> Heap::Allocate(uint64_t bytes) {
  constexpr Status kNoMemory{StatusCode::kOutOfMemory, "allocating memory of the CPU device"};
  // Also prevents an overflow of the rounding below.
  if (bytes > budget_bytes_) return kNoMemory;
  const uint64_t block_bytes = BlockBytes(bytes);
  std::vector<Block> dropped;
  {
    std::lock_guard lock(mutex_);
    if (used_bytes_ + block_bytes > budget_bytes_) return kNoMemory;
    used_bytes_ += block_bytes;
    const uint64_t room = budget_bytes_ - used_bytes_;
    // The cache may have a block of this size; take it before evicting from the cache.
    if (std::byte* address = Take(block_bytes)) {
      NoteHighWater();
      return std::unique_ptr<hal::Memory>(std::make_unique<CpuMemory>(shared_from_this(), address, bytes, block_bytes));
    }
    Evict(room, dropped);
    // Also notes the peak if the system then refuses the block. That is rare, since the budget is the machine's memory.
    NoteHighWater();
  }
  Unmap(dropped);

  std::byte* address = Map(bytes, block_bytes);
  if (address == nullptr) {
    dropped.clear();
    {
      std::lock_guard lock(mutex_);
      Evict(0, dropped);
    }
    Unmap(dropped);
    address = Map(bytes, block_bytes);
  }
  if (address == nullptr) {
    std::lock_guard lock(mutex_);
    used_bytes_ -= block_bytes;
    return kNoMemory;
  }
  return std::unique_ptr<hal::Memory>(std::make_unique<CpuMemory>(shared_from_this(), address, bytes, block_bytes));
}

uint64_t Heap::FreeBytes() const {
  std::lock_guard lock(mutex_);
  return budget_bytes_ - used_bytes_;
}

hal::PoolStats Heap::Use() const {
  std::lock_guard lock(mutex_);
  return {.total = budget_bytes_,
          .free = budget_bytes_ - used_bytes_,
          .used = used_bytes_,
          .used_high = used_high_,
          .reserved = used_bytes_ + cached_bytes_,
          .reserved_high = reserved_high_};
}

void Heap::ResetHighWater() {
  std::lock_guard lock(mutex_);
  used_high_ = used_bytes_;
  reserved_high_ = used_bytes_ + cached_bytes_;
}

void Heap::Keep(uint64_t bytes) {
  std::vector<Block> dropped;
  {
    std::lock_guard lock(mutex_);
    kept_bytes_ = bytes;
    Evict(bytes, dropped);
  }
  Unmap(dropped);
}

uint64_t Heap::kept_bytes() const {
  std::lock_guard lock(mutex_);
  return kept_bytes_;
}

void Heap::Trim(uint64_t reserved_bytes) {
  std::vector<Block> dropped;
  {
    std::lock_guard lock(mutex_);
    // Frees the largest block that does not go below the requested reserve, repeatedly.
    while (used_bytes_ + cached_bytes_ > reserved_bytes) {
      const auto above = cache_.upper_bound(used_bytes_ + cached_bytes_ - reserved_bytes);
      if (above == cache_.begin()) break;
      const uint64_t block_bytes = std::prev(above)->first;
      dropped.push_back({Take(block_bytes), block_bytes});
    }
  }
  Unmap(dropped);
}

void Heap::NoteHighWater() {
  used_high_ = std::max(used_high_, used_bytes_);
  reserved_high_ = std::max(reserved_high_, used_bytes_ + cached_bytes_);
}

std::byte* Heap::Take(uint64_t block_bytes) {
  auto found = cache_.find(block_bytes);
  if (found == cache_.end()) return nullptr;
  std::byte* address = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) cache_.erase(found);
  cached_bytes_ -= block_bytes;
  return address;
}

void Heap::Release(Block block) {
  std::vector<Block> dropped;
  {
    std::lock_guard lock(mutex_);
    used_bytes_ -= block.bytes;
    if (is_guarded_ || block.bytes < kMapBytes || block.bytes > kept_bytes_) {
      dropped.push_back(block);
    } else {
      // Evicts older blocks of other sizes, so that the cache follows a change of sizes.
      Evict(kept_bytes_ - block.bytes, dropped);
      cache_[block.bytes].push_back(block.address);
      cached_bytes_ += block.bytes;
    }
  }
  Unmap(dropped);
}

void Heap::Evict(uint64_t kept_bytes, std::vector<Block>& dropped) {
  while (cached_bytes_ > kept_bytes) {
    const uint64_t block_bytes = std::prev(cache_.end())->first;
    dropped.push_back({Take(block_bytes), block_bytes});
  }
}

}  // namespace millrace::cpu
