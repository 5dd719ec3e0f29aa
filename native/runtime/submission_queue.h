// The way of records from the threads that submit them to the channel's thread: tickets, the limit of pending records,
// the ring, and which timeline slots are reserved for streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/channel_stats.h"
#include "runtime/device_loss.h"
#include "runtime/record_reader.h"
#include "runtime/ring.h"
#include "runtime/stream_table.h"
#include "runtime/thread_inbox.h"

namespace millrace {

/// The answer to a submitted record.
struct Submission {
  Ticket ticket = 0;
  StatusCode refused = StatusCode::kOk;  // With nothing claimed and nothing queued.
};

/// The ring's producer mutex guards everything that submitting threads share, also the Submission section of each
/// StreamState: a ticket and the place of its record in the ring are one step (docs/decisions/0001). The channel's
/// thread reads the ring without it.
class SubmissionQueue {
 public:
  SubmissionQueue(StreamTable& streams, const DeviceLoss& loss, ThreadInbox& inbox, uint32_t max_pending)
      : streams_(streams), loss_(loss), inbox_(inbox), max_pending_(max_pending) {}

  // ── Threads that submit. ──
  Submission Submit(std::span<const std::byte> bytes);
  /// A record that an owner in another process submitted: it has checked it, and counts as this does. Also on a channel
  /// that is closing, whose owner submitted it before. The channel's thread itself is not woken. Returns the ticket; 0
  /// if the record was refused. Thread: the channel's.
  Ticket Forward(std::span<const std::byte> bytes);
  /// A free timeline slot, or -1. `owner_id`: of a thread that shares the device, for OwnerCleanup; else 0.
  int64_t ReserveStream(std::shared_ptr<WakeTarget> owner, uint32_t owner_id);
  [[nodiscard]] Ticket LastTicket(uint32_t stream);
  struct Point {
    uint32_t stream;
    Ticket ticket;
  };
  /// The last tickets of the streams, of all threads, that have not completed them.
  [[nodiscard]] std::vector<Point> PendingPoints();

  // ── Any thread. ──
  /// Refuses new records from now on.
  void Close();
  /// Fills in what it knows.
  void Describe(ChannelStats& stats);

  // ── The channel's thread. ──
  /// The next record; nothing if there is none. Valid until Advance.
  [[nodiscard]] std::optional<Record> First() {
    const std::span<const std::byte> bytes = ring_.Front();
    return bytes.empty() ? std::nullopt : std::optional(Record::First(bytes));
  }
  void Advance(const Record& record) { ring_.Advance(record.bytes.size()); }
  [[nodiscard]] bool Empty() { return ring_.Empty(); }
  /// One more record, of so many bytes, was issued or dropped.
  void Retire(size_t bytes) {
    retired_bytes_.store(retired_bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    retired_.store(retired_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// What was retired so far: records, and their bytes.
  [[nodiscard]] uint64_t retired() const { return retired_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t retired_bytes() const { return retired_bytes_.load(std::memory_order_relaxed); }
  /// Its stream is destroyed, so the slot can be reserved again.
  void FreeSlot(StreamState& stream);
  struct OwnedStreams {
    std::vector<StreamState*> all;
    std::vector<StreamState*> open;  // Of these, those without a STREAM_DESTROY record.
  };
  /// The streams that a thread which shares the device has reserved.
  [[nodiscard]] OwnedStreams StreamsOf(uint32_t owner_id);
  /// Submits a record of a stream that takes no other records any more. The channel's thread itself is not woken.
  template <typename Body>
  void SubmitOwn(StreamState& stream, Body record = {}) {
    const protocol::RecordHeader header{static_cast<uint16_t>(Body::kOpcode), 0, sizeof(Body), stream.index(), 0};
    std::memcpy(&record, &header, sizeof(header));
    std::lock_guard lock(ring_.producer_mutex());
    stream.is_ending = true;
    ++submitted_;
    submitted_bytes_ += sizeof(record);
    ++stream.last_ticket;
    ring_.Publish(std::as_bytes(std::span(&record, 1)));
  }

 private:
  /// Null if all slots are reserved. With the mutex held.
  StreamState* TakeSlot();
  /// Whether more records than allowed are pending, as far as known. Needs the producer mutex.
  [[nodiscard]] bool IsFull() const {
    return submitted_ - known_retired_ >= max_pending_ ||
           submitted_bytes_ - known_retired_bytes_ >= protocol::kMaxPendingBytes;
  }

  StreamTable& streams_;
  const DeviceLoss& loss_;
  ThreadInbox& inbox_;
  const uint32_t max_pending_;

  // Guarded by the ring's producer mutex.
  Ring ring_;
  bool is_closing_ = false;
  uint64_t submitted_ = 0;
  uint64_t submitted_bytes_ = 0;
  // What the two below were when they were last looked at; looking costs a cache line.
  uint64_t known_retired_ = 0;
  uint64_t known_retired_bytes_ = 0;
  // Slots whose streams have ended, the one that rests longest first. It serves again when so many others do, so that
  // the owner has read what its last stream left.
  static constexpr uint32_t kRestingSlots = 64;
  StreamState* first_resting_ = nullptr;
  StreamState* last_resting_ = nullptr;
  uint32_t resting_ = 0;

  /// Records issued or dropped. Written by the channel's thread only.
  alignas(64) std::atomic<uint64_t> retired_{0};
  std::atomic<uint64_t> retired_bytes_{0};
};

}  // namespace millrace
