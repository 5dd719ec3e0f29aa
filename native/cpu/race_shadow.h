// Finds races of a block's shared memory: two accesses to a byte by different threads, at least one of them a write,
// that no barrier and no other synchronisation orders. It decides by order alone, so it does not matter that the
// threads of a block run one after the other here.
//
// Each byte has the latest accesses to it. Time is one counter, which every synchronisation advances. A thread has a
// row: for each thread of the block, the time up to which that thread's accesses come before its own (a vector clock).
// Barriers of the block set one time for all rows; synchronisation within a warp merges the rows of its lanes. Since
// times only grow, entries of earlier blocks need no clearing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::cpu {

/// A read or write of one thread.
struct RaceAccess {
  /// Its rank in the block, or RaceShadow::kEveryThread.
  uint32_t thread = 0;
  bool is_write = false;
  bool is_atomic = false;
  /// A number for the instruction.
  uint32_t place = 0;
};

struct Race {
  /// The byte that both access, counted from the start of the memory.
  uint64_t byte = 0;
  RaceAccess first;
  RaceAccess second;
};

/// Thread: one at a time.
class RaceShadow {
 public:
  /// Code that runs once for all threads of the block.
  static constexpr uint32_t kEveryThread = 0xffff;
  static constexpr uint32_t kMaxThreads = 1024;

  /// Forgets the accesses of the last block. `threads`: at most kMaxThreads.
  void BeginBlock(uint32_t threads);
  /// An access to [from, from + bytes) of a memory, which may be its `area` 0 or 1. Returns a race with an earlier
  /// access.
  [[nodiscard]] std::optional<Race> Access(uint32_t area, uint64_t from, uint64_t bytes, const RaceAccess& access);

  /// All threads have met.
  void Barrier();
  /// The lanes of `mask` have met, in the warp that begins with the thread `first`.
  void MeetWarp(uint32_t first, uint32_t mask);
  /// `thread` makes what it knows known to those that acquire the object later.
  void Release(uint32_t thread, uintptr_t object);
  void Acquire(uint32_t thread, uintptr_t object);
  /// A memory fence. An atomic write after it releases what came before the fence.
  void Fence(uint32_t thread);
  /// An atomic write to any memory, before which the thread may have had a fence.
  void ReleaseFenced(uint32_t thread, uintptr_t address);

 private:
  using Time = uint32_t;

  struct Entry {
    Time time = 0;  // 0: none.
    uint16_t thread = 0;
    bool is_write = false;
    bool is_atomic = false;
    uint32_t place = 0;
  };
  /// The latest accesses to a byte: enough that each later one finds one by another thread.
  struct Byte {
    Entry write;
    Entry reads[2];
    Entry atomics[2];
  };

  [[nodiscard]] Time* Row(uint32_t thread);
  /// The time of a thread's accesses now.
  [[nodiscard]] Time Now(uint32_t thread);
  [[nodiscard]] bool IsBefore(const Entry& earlier, uint32_t thread);
  [[nodiscard]] bool IsInConflict(const Entry& earlier, const RaceAccess& access);
  /// A conflict with one of the latest accesses.
  [[nodiscard]] std::optional<Race> ConflictIn(const Byte& byte, uint64_t at, const RaceAccess& access);
  void Keep(Entry (&entries)[2], const Entry& entry);
  /// Later accesses of the thread are not known to those that know the earlier ones.
  void Advance(uint32_t thread);
  void MergeInto(std::vector<Time>& object, uint32_t thread);

  uint32_t threads_ = 0;
  Time time_ = 1;
  /// Accesses before this time come before those of all threads.
  Time barrier_ = 1;
  /// Threads of different warps know of each other by more than barriers.
  bool is_wide_ = false;
  std::vector<Time> rows_;  // threads_ rows of threads_ times.
  std::vector<Byte> areas_[2];
  std::unordered_map<uintptr_t, std::vector<Time>> objects_;
  std::unordered_map<uint32_t, std::vector<Time>> fences_;  // What each thread knew at its last fence.
};

}  // namespace millrace::cpu
