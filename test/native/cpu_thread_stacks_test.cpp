// Stacks of a block's threads: their guards, their number, and the memory that they keep.
#include "cpu/thread_stacks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "cpu/kernel_memory.h"
#include "testing.h"

namespace millrace {
namespace {

using cpu::KernelMemory;
using cpu::ThreadStacks;

constexpr int kNoAdvice = -1;
constexpr uint64_t kBytes = 580 << 10;
const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

/// Inaccessible memory.
class Place {
 public:
  explicit Place(uint64_t bytes) : bytes_(bytes) {
    start =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Place() { munmap(start, bytes_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::byte* start;

 private:
  uint64_t bytes_;
};

class Probe {
 public:
  Probe() { MR_EXPECT(pipe(ends_) == 0); }
  ~Probe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  /// Whether the system can read the byte.
  bool IsAccessible(const std::byte* at) {
    char got;
    return write(ends_[1], at, 1) == 1 && read(ends_[0], &got, 1) == 1;
  }

 private:
  int ends_[2];
};

MR_TEST(EachStackHasAGuard) {
  Probe probe;
  for (const int advice : {ThreadStacks::kInstallGuard, kNoAdvice}) {
    const Place place(1024 * kBytes);
    ThreadStacks stacks(advice);
    // Those of a small block stay when a larger one comes.
    for (const uint32_t count : {3u, 1000u}) {
      MR_REQUIRE(stacks.Take(place.start, count, kBytes) == place.start);
      const uint64_t made = ThreadStacks::Rounded(count);
      for (uint64_t n = 0; n < made; ++n) {
        const std::byte* const lowest = place.start + n * kBytes;
        MR_EXPECT(!probe.IsAccessible(lowest) && !probe.IsAccessible(lowest + kPage - 1));
        MR_EXPECT(probe.IsAccessible(lowest + kPage) && probe.IsAccessible(lowest + kBytes - 1));
      }
      const auto first = reinterpret_cast<uintptr_t>(place.start);
      MR_EXPECT(stacks.Contains(first) && stacks.Contains(first + made * kBytes - 1));
      MR_EXPECT(!stacks.Contains(first - 1) && !stacks.Contains(first + made * kBytes));
    }
    MR_EXPECT(stacks.Take(place.start, 3, 2 * kBytes) == nullptr);
  }
}

MR_TEST(StacksThatAreNotWholePagesHaveGuards) {
  constexpr uint64_t kLargePage = 64 << 10;
  Probe probe;
  const Place place(64 * kBytes + kLargePage);
  std::byte* const start = place.start + -reinterpret_cast<uintptr_t>(place.start) % kLargePage;
  ThreadStacks stacks(kNoAdvice, kLargePage);
  MR_REQUIRE(stacks.Take(start, 64, kBytes) == start);
  for (uint64_t n = 0; n < 64; ++n) {
    const std::byte* const guard = start + (n * kBytes + kLargePage - 1) / kLargePage * kLargePage;
    MR_EXPECT(!probe.IsAccessible(guard) && !probe.IsAccessible(guard + kLargePage - 1));
    MR_EXPECT(probe.IsAccessible(guard + kLargePage) && probe.IsAccessible(start + (n + 1) * kBytes - 1));
    start[(n + 1) * kBytes - 1] = start[guard + kLargePage - start] = std::byte{7};
  }
  MR_REQUIRE(stacks.Take(start, 64, kBytes) == start);
  for (uint64_t n = 0; n < 64; ++n) MR_EXPECT(start[(n + 1) * kBytes - 1] == std::byte{7});
}

MR_TEST(GuardsThatAreMappingsLeaveMappingsToTheProcess) {
  constexpr uint64_t kSmall = 40 << 10;
  constexpr uint64_t kDevices = 24;
  const Place place(kDevices * 1024 * kSmall);
  std::vector<std::unique_ptr<ThreadStacks>> all;
  for (uint64_t n = 0; n < kDevices; ++n) {
    all.push_back(std::make_unique<ThreadStacks>(kNoAdvice));
    MR_REQUIRE(all.back()->Take(place.start + n * 1024 * kSmall, 1024, kSmall) != nullptr);
  }
  Probe probe;
  uint64_t guards = 0;
  for (uint64_t n = 0; n < kDevices * 1024; ++n) guards += probe.IsAccessible(place.start + n * kSmall) ? 0 : 1;
  // One for each stack, then one for 16.
  MR_EXPECT_EQ(guards, 20'000 + (kDevices * 1024 - 20'000) / 16);
}

MR_TEST(StacksKeepLittleOfWhatDeepCallsHaveUsed) {
  constexpr uint64_t kCount = 64;
  const Place place(kCount * kBytes);
  ThreadStacks stacks;
  MR_REQUIRE(stacks.Take(place.start, kCount, kBytes) != nullptr);
  for (uint64_t n = 0; n < kCount; ++n) {
    for (uint64_t at = kPage; at < kBytes; at += kPage) place.start[n * kBytes + at] = std::byte{1};
  }
  MR_REQUIRE(stacks.Take(place.start, kCount, kBytes) != nullptr);
  std::vector<unsigned char> present(kCount * kBytes / kPage);
  MR_REQUIRE(mincore(place.start, kCount * kBytes, present.data()) == 0);
  uint64_t kept = 0;
  for (const unsigned char one : present) kept += one & 1;
  MR_EXPECT(kept * kPage <= kCount * (32 << 10));
  MR_EXPECT(place.start[kBytes - kPage] == std::byte{1});
}

MR_TEST(AThreadHasStacksForTheLargestBlockAndNoMore) {
  KernelMemory memory;
  MR_REQUIRE(memory.Map());
  MR_EXPECT(memory.TakeStacks(~0u, kBytes) == nullptr);
  std::byte* const stacks = memory.TakeStacks(1024, kBytes);
  MR_REQUIRE(stacks != nullptr);
  stacks[kPage] = stacks[1024 * kBytes - 1] = std::byte{1};
  MR_EXPECT(memory.Contains(reinterpret_cast<uintptr_t>(stacks)));
  MR_EXPECT(memory.TakeStacks(1025, kBytes) == nullptr);
  MR_EXPECT(memory.TakeStacks(32, kBytes) == stacks);
}

}  // namespace
}  // namespace millrace
