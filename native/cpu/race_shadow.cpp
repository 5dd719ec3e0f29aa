#include "cpu/race_shadow.h"

#include <algorithm>
#include <bit>

namespace millrace::cpu {
namespace {

constexpr uint32_t kWarp = 32;
// Far before the counter overflows.
constexpr uint32_t kLastTime = 1u << 31;

}  // namespace

void RaceShadow::BeginBlock(uint32_t threads) {
  if (time_ > kLastTime) {
    for (std::vector<Byte>& area : areas_) area.clear();
    rows_.clear();
    time_ = 1;
  }
  threads_ = threads;
  objects_.clear();
  fences_.clear();
  is_wide_ = false;
  Barrier();
}

void RaceShadow::Barrier() {
  barrier_ = ++time_;
}

// Most kernels have barriers of the block only, and need no rows.
RaceShadow::Time* RaceShadow::Row(uint32_t thread) {
  if (rows_.size() < size_t{threads_} * threads_) rows_.resize(size_t{threads_} * threads_);
  return rows_.data() + size_t{thread} * threads_;
}

RaceShadow::Time RaceShadow::Now(uint32_t thread) {
  return thread == kEveryThread || rows_.empty() ? barrier_ : std::max(barrier_, Row(thread)[thread]);
}

bool RaceShadow::IsBefore(const Entry& earlier, uint32_t thread) {
  if (earlier.time < barrier_ || earlier.thread == thread) return true;
  if (earlier.thread == kEveryThread || thread == kEveryThread) return threads_ == 1;
  const bool is_known = is_wide_ || earlier.thread / kWarp == thread / kWarp;
  return is_known && !rows_.empty() && Row(thread)[earlier.thread] >= earlier.time;
}

bool RaceShadow::IsInConflict(const Entry& earlier, const RaceAccess& access) {
  if (!earlier.is_write && !access.is_write) return false;
  if (earlier.is_atomic && access.is_atomic) return false;
  return !IsBefore(earlier, access.thread);
}

std::optional<Race> RaceShadow::ConflictIn(const Byte& byte, uint64_t at, const RaceAccess& access) {
  for (const Entry* earlier : {&byte.write, &byte.atomics[1], &byte.atomics[0], &byte.reads[1], &byte.reads[0]}) {
    if (!IsInConflict(*earlier, access)) continue;
    return Race{at, {earlier->thread, earlier->is_write, earlier->is_atomic, earlier->place}, access};
  }
  return std::nullopt;
}

std::optional<Race> RaceShadow::Access(uint32_t area, uint64_t from, uint64_t bytes, const RaceAccess& access) {
  std::vector<Byte>& memory = areas_[area];
  if (memory.size() < from + bytes) memory.resize(from + bytes);
  const Entry entry{Now(access.thread), static_cast<uint16_t>(access.thread), access.is_write, access.is_atomic,
                    access.place};
  std::optional<Race> race;
  for (uint64_t at = from; at < from + bytes; ++at) {
    Byte& byte = memory[at];
    // The latest access to most bytes comes before the last barrier, or is the same read.
    const bool is_read = !access.is_write && !access.is_atomic;
    const bool has_write = std::max({byte.write.time, byte.atomics[0].time, byte.atomics[1].time}) >= barrier_;
    if (is_read && !has_write && byte.reads[0].time == entry.time && byte.reads[0].thread == entry.thread) continue;
    if (!race && (has_write || !is_read)) race = ConflictIn(byte, at, access);
    if (access.is_atomic) {
      Keep(byte.atomics, entry);
      if (!access.is_write) continue;
      // The thread has read the value that its atomic function compares, as in a loop around a compare and swap.
      for (Entry& read : byte.reads) {
        if (read.thread == access.thread) read = {};
      }
    } else if (access.is_write) {
      // A later access that is in conflict with an earlier one of another thread is in conflict with this one, too.
      byte = {.write = entry};
    } else {
      Keep(byte.reads, entry);
    }
  }
  return race;
}

// Keeps entries of two threads, of which a later access by any thread finds one that is not its own.
void RaceShadow::Keep(Entry (&entries)[2], const Entry& entry) {
  for (Entry& kept : entries) {
    if (kept.time < barrier_ || (kept.thread == entry.thread && kept.is_write <= entry.is_write)) {
      kept = entry;
      return;
    }
  }
  // An access that comes before this one is not needed: what comes after this one comes after both.
  Entry& older = IsBefore(entries[0], entry.thread) ? entries[0] : entries[1];
  if (older.is_write <= entry.is_write) older = entry;
}

void RaceShadow::Advance(uint32_t thread) {
  Row(thread)[thread] = ++time_;
}

void RaceShadow::MeetWarp(uint32_t first, uint32_t mask) {
  if (std::popcount(mask) < 2) return;
  const uint32_t from = is_wide_ ? 0 : first;
  const uint32_t end = is_wide_ ? threads_ : std::min(threads_, first + kWarp);
  Time merged[kMaxThreads];
  std::fill(merged + from, merged + end, Time{0});
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const uint32_t thread = first + static_cast<uint32_t>(std::countr_zero(rest));
    if (thread >= threads_) continue;
    const Time* row = Row(thread);
    for (uint32_t other = from; other < end; ++other) merged[other] = std::max(merged[other], row[other]);
    merged[thread] = std::max(merged[thread], Now(thread));
  }
  ++time_;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const uint32_t thread = first + static_cast<uint32_t>(std::countr_zero(rest));
    if (thread >= threads_) continue;
    std::copy(merged + from, merged + end, Row(thread) + from);
    Row(thread)[thread] = time_;
  }
}

void RaceShadow::MergeInto(std::vector<Time>& object, uint32_t thread) {
  object.resize(threads_);
  const Time* row = Row(thread);
  for (uint32_t other = 0; other < threads_; ++other) object[other] = std::max(object[other], row[other]);
  object[thread] = std::max(object[thread], Now(thread));
}

void RaceShadow::Release(uint32_t thread, uintptr_t object) {
  if (thread >= threads_) return;
  is_wide_ = true;
  MergeInto(objects_[object], thread);
  Advance(thread);
}

void RaceShadow::Acquire(uint32_t thread, uintptr_t object) {
  const auto found = objects_.find(object);
  if (found == objects_.end() || thread >= threads_) return;
  Time* row = Row(thread);
  for (uint32_t other = 0; other < threads_; ++other) {
    if (other != thread) row[other] = std::max(row[other], found->second[other]);
  }
}

void RaceShadow::Fence(uint32_t thread) {
  if (thread >= threads_) return;
  std::vector<Time>& fence = fences_[thread];
  fence.clear();
  MergeInto(fence, thread);
  Advance(thread);
}

void RaceShadow::ReleaseFenced(uint32_t thread, uintptr_t address) {
  const auto fence = fences_.find(thread);
  if (fence == fences_.end()) return;
  is_wide_ = true;
  std::vector<Time>& object = objects_[address];
  object.resize(threads_);
  for (uint32_t other = 0; other < threads_; ++other) object[other] = std::max(object[other], fence->second[other]);
}

}  // namespace millrace::cpu
