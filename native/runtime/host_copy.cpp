#include "runtime/host_copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

#include "hal/helper_threads.h"

namespace millrace {
namespace {

constexpr size_t kPage = 4 << 10;
constexpr size_t kHugePage = 2 << 20;
/// On a host with 16 cores (H200), 12 threads copied 39 GB/s, 8 threads 30 and one thread 9.5.
constexpr unsigned kMostHelpers = 11;
/// Waking the helpers costs as much as copying fewer bytes.
constexpr size_t kSmallestShared = 1 << 20;
constexpr size_t kSmallestPiece = 256 << 10;
constexpr size_t kLargestPiece = 16 << 20;

/// Never destroyed, because environments end in any order and another thread may be copying.
HelperThreads* MakeHelpers(const char* name) {
  return new HelperThreads(name, std::min(std::max(std::thread::hardware_concurrency(), 1u) - 1, kMostHelpers));
}

HelperThreads& Helpers() {
  static HelperThreads* helpers = MakeHelpers("mr-copy");
  return *helpers;
}

/// Of their own, so that a snapshot on the event loop never waits for a copy apart from it.
HelperThreads& HelpersApart() {
  static HelperThreads* helpers = MakeHelpers("mr-copy-apart");
  return *helpers;
}

/// Calls `part(at, count)` for pieces of the bytes, on this thread and the helpers. Pieces end at multiples of
/// `granule`, counted from `skew` bytes before the first.
template <typename Part>
void InPieces(HelperThreads& helpers, size_t bytes, size_t granule, size_t skew, const Part& part) {
  size_t piece = std::clamp(bytes / (2 * (helpers.count() + 1)), kSmallestPiece, kLargestPiece);
  piece = std::max(piece / granule, size_t{1}) * granule;
  std::atomic<size_t> next{0};
  helpers.Run([&](unsigned) {
    for (;;) {
      const size_t end = next.fetch_add(piece, std::memory_order_relaxed) + piece;
      const size_t at = std::max(end - piece, skew) - skew;
      if (at >= bytes) return;
      part(at, std::min(end - skew, bytes) - at);
    }
  });
}

/// Threads that touch one huge page first would each make it, and all but one in vain.
template <typename Part>
void InHugePages(HelperThreads& helpers, std::span<std::byte> bytes, const Part& part) {
  InPieces(helpers, bytes.size(), kHugePage, reinterpret_cast<uintptr_t>(bytes.data()) % kHugePage, part);
}

}  // namespace

void CopyHost(std::span<std::byte> dst, std::span<const std::byte> src) {
  const size_t bytes = src.size();
  if (bytes < kSmallestShared) {
    if (bytes != 0) std::memcpy(dst.data(), src.data(), bytes);
    return;
  }
  InPieces(Helpers(), bytes, 1, 0,
           [&](size_t at, size_t count) { std::memcpy(dst.data() + at, src.data() + at, count); });
}

void CopyToFresh(std::span<std::byte> dst, std::span<const std::byte> src) {
  InHugePages(HelpersApart(), dst,
              [&](size_t at, size_t count) { std::memcpy(dst.data() + at, src.data() + at, count); });
}

void TouchPages(std::span<std::byte> bytes) {
  InHugePages(Helpers(), bytes, [&](size_t at, size_t count) {
    for (size_t offset = at; offset < at + count; offset += kPage) {
      std::atomic_ref(reinterpret_cast<uint8_t&>(bytes[offset])).fetch_or(0, std::memory_order_relaxed);
    }
  });
}

void AdviseHugePages(std::span<std::byte> bytes) {
  const auto start = (reinterpret_cast<uintptr_t>(bytes.data()) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size()) / kHugePage * kHugePage;
  if (start < end) std::ignore = madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

}  // namespace millrace
