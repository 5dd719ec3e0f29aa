// The queue of records to a channel: many producers, one consumer, bounded by a number of records.
//
// Records are stored one after the other in segments that never move, so the consumer reads them in place and without a
// lock. Producers take a mutex: claiming a ticket and publishing its record must be one step, otherwise the records of
// two threads that submit to one stream could be in the wrong order of tickets. Without contention, the usual case, it
// costs 9 instructions. Segments are allocated as needed and freed or reused after they were read, so an idle ring is
// small.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hal/status.h"
#include "runtime/quick_mutex.h"

namespace millrace {

class Ring {
 public:
  Ring();
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// The producer holds it from its checks until the record is published.
  [[nodiscard]] QuickMutex& producer_mutex() { return mutex_; }

  /// Appends a record, and writes `reported` in its header. The caller holds the producer mutex. Thread: any.
  void Publish(std::span<const std::byte> record);

  /// The bytes of the next record and of all later records in its segment; empty if there is none. Valid until Advance.
  /// Thread: consumer.
  [[nodiscard]] std::span<const std::byte> Front();
  void Advance(size_t bytes) { read_at_ += bytes; }
  /// Thread: consumer.
  [[nodiscard]] bool Empty() { return Front().empty(); }

  /// The allocated bytes, used or not. Takes the producer mutex. Thread: any.
  [[nodiscard]] size_t HeldBytes();

 private:
  static constexpr size_t kSegmentBytes = 64 * 1024;
  /// Segments kept for reuse, so that a steady flow allocates nothing (1 MiB).
  static constexpr size_t kSpareSegments = 16;

  struct Segment {
    std::atomic<uint32_t> committed{0};
    std::atomic<Segment*> next{nullptr};
    alignas(64) std::byte data[kSegmentBytes];
  };

  Segment* TakeSegment();

  // Guarded by mutex_.
  QuickMutex mutex_;
  Segment* tail_;
  std::vector<std::unique_ptr<Segment>> spare_;
  size_t segments_ = 1;

  // Consumer only, on a separate cache line.
  alignas(64) Segment* head_;
  size_t read_at_ = 0;
  size_t known_committed_ = 0;  // Bytes of head_. The producers' cache line is read only when these are consumed.
};

}  // namespace millrace
