#include "cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace millrace::cpu {
namespace {

constexpr uint64_t kAlignment = SmallBlocks::kStep;
// Blocks of this size or more use whole huge pages: the first touch of 64 MiB took 25 ms instead of 36.
constexpr uint64_t kHugeBytes = 4 << 20;
constexpr uint64_t kHugePage = 2 << 20;

// Smaller arrays stay in a core's cache, however many take turns.
constexpr uint64_t kLeastReused = SmallBlocks::kEnd;

// Vectors of CUDA C++ have at most this alignment, and kernels take arrays of floats for arrays of float4. More would
// leave more bytes behind an array where only writes are found.
constexpr uint64_t kGuardAlignment = 16;
// Each has two mappings.
constexpr uint32_t kMostGuardedArrays = 8192;
constexpr std::byte kPattern{0xa7};

// Added to a distance in bytes.
constexpr uint64_t kNotAnArgument = 1ull << 62;

// Four size classes per power of two, so that arrays of similar size share blocks. The surplus costs only address
// space, since untouched pages are never allocated.
constexpr uint64_t BlockBytes(uint64_t bytes) {
  if (bytes < SmallBlocks::kEnd) return RoundUp(std::max<uint64_t>(bytes, 1), kAlignment);
  return RoundUp(bytes, std::bit_floor(bytes) / 4);
}

uint64_t GuardedBytes(uint64_t bytes) {
  return ToPages(RoundUp(std::max<uint64_t>(bytes, 1), kGuardAlignment));
}

/// The rest of the pages of a guarded array.
struct Margins {
  Margins(std::byte* block, uint64_t block_bytes, std::byte* array, uint64_t array_bytes)
      : front(block, array), behind(array + array_bytes, block + block_bytes) {}
  void Fill() const {
    std::fill(front.begin(), front.end(), kPattern);
    std::fill(behind.begin(), behind.end(), kPattern);
  }
  std::span<std::byte> front;
  std::span<std::byte> behind;
};

bool IsChanged(std::byte byte) {
  return byte != kPattern;
}

struct Heaps {
  std::mutex mutex;
  std::vector<Heap*> all;      // Guarded by mutex.
  std::vector<Heap*> guarded;  // Guarded by mutex.
  std::atomic<size_t> guarded_count{0};
};

Heaps& AllHeaps() {
  // Never destroyed, because the threads of channels may outlive static objects.
  static auto* const heaps = new Heaps;
  return *heaps;
}

}  // namespace

Heap::Heap(uint64_t budget_bytes) : budget_bytes_(budget_bytes), space_(budget_bytes), small_(space_) {
  std::lock_guard lock(AllHeaps().mutex);
  AllHeaps().all.push_back(this);
}

Heap::~Heap() {
  Heaps& heaps = AllHeaps();
  std::lock_guard lock(heaps.mutex);
  std::erase(heaps.all, this);
  std::erase(heaps.guarded, this);
  heaps.guarded_count.store(heaps.guarded.size(), std::memory_order_relaxed);
}

void Heap::Guard() {
  is_guarded_ = true;
  Heaps& heaps = AllHeaps();
  std::lock_guard lock(heaps.mutex);
  heaps.guarded.push_back(this);
  heaps.guarded_count.store(heaps.guarded.size(), std::memory_order_relaxed);
}

void Heap::Map(Block& block) {
  if (block.is_guarded) {
    block.address = space_.Map(block.bytes, kAlignment, kArrayGuardBytes);
  } else if (block.bytes < SmallBlocks::kEnd) {
    std::lock_guard lock(mutex_);
    Take(block);
  } else {
    const bool is_huge = block.bytes >= kHugeBytes;
    block.address = space_.Map(block.bytes, is_huge ? kHugePage : kAlignment);
    // Best effort: if the system refuses, the pages are small.
    if (is_huge && block.address != nullptr) madvise(block.address, block.bytes, MADV_HUGEPAGE);
  }
}

void Heap::Unmap(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) space_.Unmap(block.address, block.bytes, block.is_guarded ? kArrayGuardBytes : 0);
}

Result<std::unique_ptr<hal::Memory>> Heap::Allocate(uint64_t bytes) {
  if (is_guarded_) {
    if (auto guarded = Allocate(bytes, true); guarded.ok()) return guarded;
  }
  return Allocate(bytes, false);
}

Result<std::unique_ptr<hal::Memory>> Heap::Allocate(uint64_t bytes, bool is_guarded) {
  constexpr Status kNoMemory{StatusCode::kOutOfMemory, "allocating memory of the CPU device"};
  // Also prevents an overflow of the rounding below.
  if (bytes > budget_bytes_) return kNoMemory;
  Block block{.bytes = is_guarded ? GuardedBytes(bytes) : BlockBytes(bytes), .is_guarded = is_guarded};
  std::vector<Block> dropped;
  {
    std::lock_guard lock(mutex_);
    if (used_bytes_ + block.bytes > budget_bytes_) return kNoMemory;
    if (is_guarded && guarded_arrays_ == kMostGuardedArrays) return kNoMemory;
    used_bytes_ += block.bytes;
    guarded_arrays_ += is_guarded ? 1 : 0;
    const uint64_t room = budget_bytes_ - used_bytes_;
    // The cache may have a block of this size; take it before evicting from the cache.
    if (!is_guarded) Take(block);
    if (block.address == nullptr) Evict(room, dropped);
    // Also notes the peak if the system then refuses the block. That is rare, since the budget is the machine's memory.
    NoteHighWater();
    if (block.address != nullptr) return Own(block, bytes);
  }
  Unmap(dropped);

  Map(block);
  if (block.address == nullptr) {
    dropped.clear();
    {
      std::lock_guard lock(mutex_);
      Evict(0, dropped);
    }
    Unmap(dropped);
    Map(block);
  }
  std::lock_guard lock(mutex_);
  if (block.address != nullptr) return Own(block, bytes);
  used_bytes_ -= block.bytes;
  guarded_arrays_ -= is_guarded ? 1 : 0;
  return kNoMemory;
}

std::unique_ptr<hal::Memory> Heap::Own(const Block& block, uint64_t bytes) {
  std::byte* address = block.address;
  if (block.is_guarded) {
    address += block.bytes - RoundUp(std::max<uint64_t>(bytes, 1), kGuardAlignment);
    Margins(block.address, block.bytes, address, bytes).Fill();
  }
  auto memory = std::make_unique<CpuMemory>(shared_from_this(), block, address, bytes);
  memory->after_ = arrays_;
  if (arrays_ != nullptr) arrays_->before_ = memory.get();
  arrays_ = memory.get();
  return memory;
}

uint64_t Heap::ReusableBytes(const hal::Memory& freed) const {
  const auto* const own = dynamic_cast<const CpuMemory*>(&freed);
  return own == nullptr || own->heap_.get() != this || is_guarded_ ? 0 : ReusableBytes(own->block_.bytes);
}

uint64_t Heap::ReusableBytes(uint64_t bytes) const {
  return is_guarded_ || bytes < kLeastReused || bytes > budget_bytes_ ? 0 : BlockBytes(bytes);
}

void Heap::Renew(hal::Memory& freed, uint64_t bytes) {
  auto& own = static_cast<CpuMemory&>(freed);
  MR_CHECK(own.block_.bytes == BlockBytes(bytes));
  std::lock_guard lock(mutex_);
  own.bytes_ = bytes;
}

bool Heap::WouldKeep(uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  return !is_guarded_ && bytes <= budget_bytes_ && cached_bytes_ + BlockBytes(bytes) <= kept_bytes_;
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
      Block& block = dropped.emplace_back(Block{.bytes = std::prev(above)->first});
      Take(block);
    }
  }
  Unmap(dropped);
}

void Heap::NoteHighWater() {
  used_high_ = std::max(used_high_, used_bytes_);
  reserved_high_ = std::max(reserved_high_, used_bytes_ + cached_bytes_);
}

void Heap::Take(Block& block) {
  if (block.bytes < SmallBlocks::kEnd) {
    const SmallBlocks::Block small = small_.Take(block.bytes);
    block.address = small.address;
    block.slab = small.slab;
    return;
  }
  const auto found = cache_.find(block.bytes);
  if (found == cache_.end()) return;
  block.address = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) cache_.erase(found);
  cached_bytes_ -= block.bytes;
}

void Heap::Release(const CpuMemory& memory) {
  const Block& block = memory.block_;
  std::vector<Block> dropped;
  {
    std::lock_guard lock(mutex_);
    (memory.before_ == nullptr ? arrays_ : memory.before_->after_) = memory.after_;
    if (memory.after_ != nullptr) memory.after_->before_ = memory.before_;
    used_bytes_ -= block.bytes;
    guarded_arrays_ -= block.is_guarded ? 1 : 0;
    if (block.slab != nullptr) {
      small_.Give({block.address, block.slab});
    } else if (is_guarded_ || block.bytes > kept_bytes_) {
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
    Block& block = dropped.emplace_back(Block{.bytes = std::prev(cache_.end())->first});
    Take(block);
  }
}

std::optional<StrayByte> Heap::FindStrayAccess(uintptr_t address, std::span<const uint64_t> words) {
  std::lock_guard all(AllHeaps().mutex);
  for (const Heap* heap : AllHeaps().all) {
    if (!heap->space_.Contains(address)) continue;
    std::lock_guard lock(heap->mutex_);
    StrayByte nearest;
    uint64_t least = UINT64_MAX;
    for (const CpuMemory* memory = heap->arrays_; memory != nullptr; memory = memory->after_) {
      const ArrayPlace place = memory->place();
      const bool is_argument =
          std::any_of(words.begin(), words.end(), [&](uint64_t word) { return place.IsPointedTo(word); });
      const uint64_t end = place.address + place.bytes;
      uint64_t distance = address < place.address ? place.address - address : address - std::min(address, end);
      if (!is_argument && (!heap->is_guarded_ || distance > kArrayGuardBytes)) distance += kNotAnArgument;
      if (distance >= least) continue;
      least = distance;
      nearest = {place, static_cast<int64_t>(address - place.address)};
    }
    return nearest;
  }
  return std::nullopt;
}

std::optional<StrayByte> Heap::FindStrayWrite(std::span<const uint64_t> words) {
  if (AllHeaps().guarded_count.load(std::memory_order_relaxed) == 0) return std::nullopt;
  std::lock_guard all(AllHeaps().mutex);
  for (const Heap* heap : AllHeaps().guarded) {
    std::lock_guard lock(heap->mutex_);
    for (const CpuMemory* memory = heap->arrays_; memory != nullptr; memory = memory->after_) {
      if (!memory->block_.is_guarded) continue;
      const ArrayPlace place = memory->place();
      if (std::none_of(words.begin(), words.end(), [&](uint64_t word) { return place.IsPointedTo(word); })) continue;
      const Margins margins(memory->block_.address, memory->block_.bytes, memory->address_, memory->bytes_);
      const auto before = std::find_if(margins.front.rbegin(), margins.front.rend(), IsChanged);
      const auto behind = std::find_if(margins.behind.begin(), margins.behind.end(), IsChanged);
      if (before == margins.front.rend() && behind == margins.behind.end()) continue;
      const int64_t byte = before != margins.front.rend()
                               ? -1 - (before - margins.front.rbegin())
                               : static_cast<int64_t>(place.bytes) + (behind - margins.behind.begin());
      margins.Fill();
      return StrayByte{place, byte};
    }
  }
  return std::nullopt;
}

}  // namespace millrace::cpu
