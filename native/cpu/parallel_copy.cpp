#include "cpu/parallel_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "hal/status.h"

namespace millrace::cpu {
namespace {

// Chunk that one thread takes at a time: small enough to measure, and a multiple of elements and pages.
constexpr uint64_t kBlockBytes = 128 << 10;

// Fits in the L1 cache.
constexpr uint64_t kMotifBytes = 2 << 10;

constexpr uint64_t BlockCount(uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

template <typename T>
void FillElements(const Fill& fill) {
  const auto pattern = static_cast<T>(fill.pattern);
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &pattern, sizeof(T));
  // Usually zeros, for which memset uses the machine's widest stores.
  if (std::all_of(bytes, bytes + sizeof(T), [&](unsigned char byte) { return byte == bytes[0]; })) {
    if (fill.count > 0) std::memset(fill.dst, bytes[0], fill.count * sizeof(T));
    return;
  }
  // Stores the first elements one by one, then copies them, which is as fast.
  const uint64_t first = std::min<uint64_t>(fill.count, kMotifBytes / sizeof(T));
  std::fill_n(reinterpret_cast<T*>(fill.dst), first, pattern);
  const uint64_t size = fill.count * sizeof(T);
  for (uint64_t done = first * sizeof(T); done < size; done += kMotifBytes) {
    std::memcpy(fill.dst + done, fill.dst, std::min(kMotifBytes, size - done));
  }
}

uint64_t BytesOf(std::span<const hal::BatchedCopy> copies) {
  uint64_t bytes = 0;
  for (const hal::BatchedCopy& copy : copies) bytes += copy.bytes;
  return bytes;
}

uint64_t BlockCount(std::span<const hal::BatchedCopy> copies) {
  if (BytesOf(copies) < kSweepBytes) return 1;
  uint64_t blocks = 0;
  for (const hal::BatchedCopy& copy : copies) blocks += BlockCount(copy.bytes);
  return blocks;
}

}  // namespace

void RunFill(const Fill& fill) {
  switch (fill.element_bytes) {
    case 1:
      return FillElements<uint8_t>(fill);
    case 2:
      return FillElements<uint16_t>(fill);
    case 4:
      return FillElements<uint32_t>(fill);
    case 8:
      return FillElements<uint64_t>(fill);
    default:
      MR_CHECK(false);
  }
}

void RunCopy(const Copy& copy) {
  if (copy.bytes > 0) std::memcpy(copy.dst, copy.src, copy.bytes);
}

void HostCopy::RunPart(uint64_t start, uint64_t bytes) const {
  if (!host_.IsWithdrawn()) return RunCopy({copy_.dst + start, copy_.src + start, bytes});
  if (host_.report == nullptr) return;
  std::atomic_ref(host_.report->state).store(hal::kFaultWritten, std::memory_order_release);
  std::atomic_ref(*host_.fault_word).store(1, std::memory_order_release);
}

ParallelFill::ParallelFill(const Fill& fill, int32_t priority)
    : ParallelItem(BlockCount(fill.count * fill.element_bytes), priority), fill_(fill) {}

void ParallelFill::RunBlocks(uint64_t first, uint64_t end) {
  const uint64_t block = kBlockBytes / fill_.element_bytes;
  const uint64_t begin = first * block;
  const uint64_t count = std::min(end * block, fill_.count) - begin;
  RunFill({fill_.dst + first * kBlockBytes, fill_.element_bytes, fill_.pattern, count});
}

ParallelCopy::ParallelCopy(HostCopy copy, int32_t priority)
    : ParallelItem(BlockCount(copy.bytes()), priority), copy_(std::move(copy)) {}

void ParallelCopy::RunBlocks(uint64_t first, uint64_t end) {
  // Block by block, so that a copy of any size stops soon after its host memory is withdrawn.
  for (uint64_t block = first; block < end; ++block) {
    const uint64_t begin = block * kBlockBytes;
    copy_.RunPart(begin, std::min(kBlockBytes, copy_.bytes() - begin));
  }
}

BatchCopy::BatchCopy(std::span<const hal::BatchedCopy> copies, int32_t priority)
    : ParallelItem(BlockCount(copies), priority), bytes_(BytesOf(copies)) {
  uint64_t blocks = 0;
  for (const hal::BatchedCopy& copy : copies) {
    copies_.emplace_back(Copy{copy.dst, copy.src, copy.bytes}, copy.host);
    first_blocks_.push_back(blocks);
    blocks += BlockCount(copy.bytes);
  }
}

void BatchCopy::RunBlocks(uint64_t first, uint64_t end) {
  if (block_count() == 1) {
    for (const HostCopy& copy : copies_) copy.Run();
    return;
  }
  for (uint64_t block = first; block < end; ++block) {
    const auto behind = std::upper_bound(first_blocks_.begin(), first_blocks_.end(), block);
    const HostCopy& copy = copies_[static_cast<size_t>(behind - first_blocks_.begin()) - 1];
    const uint64_t begin = (block - *(behind - 1)) * kBlockBytes;
    copy.RunPart(begin, std::min(kBlockBytes, copy.bytes() - begin));
  }
}

}  // namespace millrace::cpu
