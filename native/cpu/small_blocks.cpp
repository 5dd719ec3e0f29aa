#include "cpu/small_blocks.h"

namespace millrace::cpu {

struct Slab {
  std::byte* start = nullptr;
  uint64_t block_bytes = 0;
  uint32_t live = 0;
  uint32_t fresh = 0;           // Blocks from this index on were never taken.
  std::vector<uint32_t> given;  // Indices of the others that are free; the last was used most recently.
  size_t place = 0;             // In the list of open slabs.
};

namespace {

constexpr uint64_t kSlabBytes = 256 << 10;
// Kept for other blocks: a program that makes and frees one small array at a time reuses its page.
constexpr size_t kMostEmptySlabs = 16;

bool IsFull(const Slab& slab) {
  return (slab.live + 1) * slab.block_bytes > kSlabBytes;
}

}  // namespace

SmallBlocks::SmallBlocks(AddressSpace& space) : space_(space) {}
SmallBlocks::~SmallBlocks() = default;

SmallBlocks::Block SmallBlocks::Take(uint64_t block_bytes) {
  std::vector<Slab*>& open = open_[block_bytes / kStep];
  if (open.empty()) {
    Slab* const made = Make();
    if (made == nullptr) return {};
    made->block_bytes = block_bytes;
    Offer(*made);
  }
  Slab& slab = *open.back();
  uint32_t index = slab.fresh;
  if (slab.given.empty()) {
    ++slab.fresh;
  } else {
    index = slab.given.back();
    slab.given.pop_back();
  }
  ++slab.live;
  if (IsFull(slab)) Withdraw(slab);
  return {slab.start + index * block_bytes, &slab};
}

void SmallBlocks::Give(const Block& block) {
  Slab& slab = *block.slab;
  if (IsFull(slab)) Offer(slab);
  slab.given.push_back(static_cast<uint32_t>((block.address - slab.start) / static_cast<ptrdiff_t>(slab.block_bytes)));
  if (--slab.live > 0) return;
  Withdraw(slab);
  if (empty_.size() < kMostEmptySlabs) {
    empty_.push_back(&slab);
    return;
  }
  space_.Unmap(slab.start, kSlabBytes);
  slabs_.erase(slab.start);
}

Slab* SmallBlocks::Make() {
  if (!empty_.empty()) {
    Slab* const slab = empty_.back();
    empty_.pop_back();
    slab->fresh = 0;
    slab->given.clear();
    return slab;
  }
  std::byte* const start = space_.Map(kSlabBytes, kStep);
  if (start == nullptr) return nullptr;
  auto& slab = slabs_[start] = std::make_unique<Slab>();
  slab->start = start;
  return slab.get();
}

void SmallBlocks::Offer(Slab& slab) {
  std::vector<Slab*>& open = open_[slab.block_bytes / kStep];
  slab.place = open.size();
  open.push_back(&slab);
}

void SmallBlocks::Withdraw(Slab& slab) {
  std::vector<Slab*>& open = open_[slab.block_bytes / kStep];
  open[slab.place] = open.back();
  open[slab.place]->place = slab.place;
  open.pop_back();
}

}  // namespace millrace::cpu
