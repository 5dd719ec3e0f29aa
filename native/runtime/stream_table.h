// The streams of a channel by timeline slot. A slot gets its StreamState when a stream is first reserved there, and
// keeps it for as long as the channel lives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/stream_state.h"

namespace millrace {

/// Thread: any reads it without a lock; SubmissionQueue adds streams with its mutex held.
class StreamTable {
 public:
  StreamTable(std::span<protocol::TimelineSlot> timeline, KernelFailures& kernel_failures, Recorder& recorder)
      : timeline_(timeline),
        kernel_failures_(kernel_failures),
        recorder_(recorder),
        streams_(new std::atomic<StreamState*>[timeline.size()]()) {}
  ~StreamTable() {
    for (uint32_t n = 0; n < count(); ++n) delete &At(n);
  }
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  /// It has the words of the device, too.
  [[nodiscard]] protocol::TimelineSlot& first_slot() const { return timeline_[0]; }
  [[nodiscard]] uint32_t slots() const { return static_cast<uint32_t>(timeline_.size()); }
  /// The slots that were ever used: each below this number has a stream.
  [[nodiscard]] uint32_t count() const { return count_.load(std::memory_order_acquire); }
  /// The stream of a slot below count().
  [[nodiscard]] StreamState& At(uint32_t stream) const { return *streams_[stream].load(std::memory_order_acquire); }
  /// Null if no stream was ever reserved there.
  [[nodiscard]] StreamState* Find(uint32_t stream) const { return stream < count() ? &At(stream) : nullptr; }
  /// The stream of the next slot, of which there is one. Only with SubmissionQueue's mutex held.
  [[nodiscard]] StreamState& Add() {
    const uint32_t stream = count_.load(std::memory_order_relaxed);
    auto* const added = new StreamState(stream, timeline_[stream], kernel_failures_, recorder_);
    streams_[stream].store(added, std::memory_order_release);
    count_.store(stream + 1, std::memory_order_release);
    return *added;
  }

 private:
  const std::span<protocol::TimelineSlot> timeline_;
  KernelFailures& kernel_failures_;  // The channel.
  Recorder& recorder_;
  const std::unique_ptr<std::atomic<StreamState*>[]> streams_;
  std::atomic<uint32_t> count_{0};
};

}  // namespace millrace
