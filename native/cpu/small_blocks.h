// Blocks that are smaller than a few pages, for arrays: cut from slabs of one block size each. All bookkeeping lies
// outside of the slabs, where kernels cannot reach it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cpu/address_space.h"

namespace millrace::cpu {

struct Slab;

/// Thread: one at a time.
class SmallBlocks {
 public:
  /// Block sizes are multiples of kStep, below kEnd.
  static constexpr uint64_t kStep = 256;
  static constexpr uint64_t kEnd = 64 << 10;

  struct Block {
    std::byte* address = nullptr;
    Slab* slab = nullptr;
  };

  explicit SmallBlocks(AddressSpace& space);
  ~SmallBlocks();
  SmallBlocks(const SmallBlocks&) = delete;
  SmallBlocks& operator=(const SmallBlocks&) = delete;

  /// A null address if the system refuses the memory.
  [[nodiscard]] Block Take(uint64_t block_bytes);
  void Give(const Block& block);

 private:
  [[nodiscard]] Slab* Make();
  /// Makes the slab findable for Take, and the opposite.
  void Offer(Slab& slab);
  void Withdraw(Slab& slab);

  AddressSpace& space_;
  std::unordered_map<std::byte*, std::unique_ptr<Slab>> slabs_;  // By their first byte.
  std::array<std::vector<Slab*>, kEnd / kStep> open_;            // By block size: slabs that have room.
  std::vector<Slab*> empty_;
};

}  // namespace millrace::cpu
