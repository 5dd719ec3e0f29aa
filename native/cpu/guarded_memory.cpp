#include "cpu/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "cpu/memory.h"

namespace millrace::cpu {
namespace {

// Vectors of CUDA C++ have at most this alignment, and kernels take arrays of floats for arrays of float4. More would
// leave more bytes behind an array where a stray access is not seen.
constexpr uint64_t kGuardAlignment = 16;

struct Mapping {
  uintptr_t start;
  uint64_t bytes;
  GuardedBlock block;
};

std::mutex mutex;
/// Guarded by `mutex`. By the end of the mapping.
std::map<uintptr_t, Mapping>& Mappings() {
  static std::map<uintptr_t, Mapping> mappings;
  return mappings;
}

}  // namespace

std::byte* MapGuarded(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t used = RoundUp(std::max<uint64_t>(bytes, 1), kGuardAlignment);
  const uint64_t room = RoundUp(used, page);
  const uint64_t whole = room + 2 * kArrayGuardBytes;
  void* mapped = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(mapped) + kArrayGuardBytes;
  if (mprotect(first, room, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, whole);
    return nullptr;
  }
  std::byte* address = first + room - used;
  const auto start = reinterpret_cast<uintptr_t>(mapped);
  std::lock_guard lock(mutex);
  Mappings()[start + whole] = {start, whole, {reinterpret_cast<uintptr_t>(address), bytes}};
  return address;
}

void UnmapGuarded(std::byte* address) {
  Mapping mapping;
  {
    std::lock_guard lock(mutex);
    const auto found = Mappings().upper_bound(reinterpret_cast<uintptr_t>(address));
    mapping = found->second;
    Mappings().erase(found);
  }
  munmap(reinterpret_cast<void*>(mapping.start), mapping.bytes);
}

std::optional<GuardedBlock> GuardedNear(uintptr_t address) {
  std::lock_guard lock(mutex);
  const auto found = Mappings().upper_bound(address);
  if (found == Mappings().end() || address < found->second.start) return std::nullopt;
  return found->second.block;
}

}  // namespace millrace::cpu
