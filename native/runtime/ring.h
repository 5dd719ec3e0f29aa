// The way records reach a channel: many producers, one consumer, bounded by a count of records.
//
// Records stand one after the other in segments that never move, so the consumer reads them in place and without a
// lock. Producers take a mutex: claiming a ticket and publishing its record must be one step, or two threads that
// submit to one stream would see their tickets inverted. Uncontended, which is nearly always, it costs about 20 ns.
// Segments are made as they are needed and given back when read, so an idle ring is small whatever it once held.
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

namespace millrace {

class Ring {
 public:
  Ring();
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Held by the producer from its checks to its publication.
  [[nodiscard]] std::mutex& producer_mutex() { return mutex_; }

  /// Appends a record. The producer mutex is held. Thread: any.
  void Publish(std::span<const std::byte> record);

  /// The next record's bytes and all that stand behind it in its segment, or empty when there is none. They stay
  /// where they are until Advance. Thread: consumer.
  [[nodiscard]] std::span<const std::byte> Front();
  void Advance(size_t bytes) { read_at_ += bytes; }
  /// Thread: consumer.
  [[nodiscard]] bool Empty() { return Front().empty(); }

  /// Bytes held, used or not. Takes the producer mutex. Thread: any.
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
  std::mutex mutex_;
  Segment* tail_;
  std::vector<std::unique_ptr<Segment>> spare_;
  size_t segments_ = 1;

  // Consumer only, on a cache line of its own.
  alignas(64) Segment* head_;
  size_t read_at_ = 0;
  size_t known_committed_ = 0;  // Of head_; the producers' cache line is looked at only when this is used up.
};

}  // namespace millrace
