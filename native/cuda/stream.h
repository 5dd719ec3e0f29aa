// A CUDA stream and its progress: created by this library, or wrapped.
//
// Every record is a driver call followed by an untimed event (event_table.h). `Query` and `Resolve` ask about the
// events and raise the host's word; `Signal` makes the stream itself write the other word, unless that would hold up
// copies (copies_in_flight.h). The stream's progress is the larger of the two words.
//
// Threads: submitting calls come from the device's channel. A `Wait` or `Resolve` of another channel reads this
// stream's table at the same time, so all lock `mutex_`. No call here holds two streams' mutexes.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "cuda/context.h"
#include "cuda/copies_in_flight.h"
#include "cuda/copies_through_host.h"
#include "cuda/device_clock.h"
#include "cuda/event_table.h"
#include "cuda/long_wait.h"
#include "cuda/module.h"
#include "cuda/pageable_copies.h"
#include "cuda/partitions.h"
#include "cuda/reaper.h"
#include "cuda/strided.h"
#include "cuda/ticket_times.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// Objects that the streams of one device share.
struct StreamSupport {
  std::shared_ptr<Context> context;
  BuiltIns built_ins;
  std::shared_ptr<Reaper> reaper;
  std::shared_ptr<PageableCopies> pageable;
  std::shared_ptr<CopiesInFlight> copies = std::make_shared<CopiesInFlight>();
  std::shared_ptr<DeviceClock> clock;
  std::shared_ptr<const Partition> partition = nullptr;  // Of this stream alone.
  bool has_pools = false;
  bool can_write_words = false;
};

class Stream final : public hal::Stream {
 public:
  /// `word` is the device address of the slot's device_word. Thread: channel.
  static Result<std::unique_ptr<hal::Stream>> Create(StreamSupport support, const hal::StreamRequest& request,
                                                     CUdeviceptr word);
  ~Stream() override;

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Status Launch(hal::Ticket ticket, const hal::LaunchRequest& request) override;
  Status LaunchGraph(hal::Ticket ticket, const hal::GraphLaunchRequest& request) override;
  Status UploadGraph(hal::Ticket ticket, hal::Graph& graph) override;
  Status Copy(hal::Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes,
              const hal::HostLeases& host = {}) override;
  Status CopyBatch(hal::Ticket ticket, std::span<const hal::BatchedCopy> copies) override;
  Status Fill(hal::Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) override;
  Status CopyPeer(hal::Ticket ticket, const hal::PeerCopy& copy) override;
  [[nodiscard]] bool HasStaging(uint64_t bytes) const override { return copies_through_host_.HasRoom(bytes); }
  Status MakeStaging(uint64_t bytes) override { return copies_through_host_.MakeRoom(support_.context, bytes); }
  Status CopyStrided(hal::Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                     std::span<const hal::StridedAxis> axes) override;
  Status CopyArray(hal::Ticket ticket, const hal::ArrayCopy& copy) override;
  Status FillStrided(hal::Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                     std::span<const hal::StridedAxis> axes) override;
  Status CopyPageable(std::byte* dst, const std::byte* src, uint64_t bytes) override;
  Status Wait(hal::Ticket ticket, hal::Stream& other, hal::Ticket until) override;
  Status Record(hal::Ticket ticket, hal::EventHandle& event_handle) override;
  Status WaitEvent(hal::Ticket ticket, hal::EventHandle& event_handle) override;
  Status Nop(hal::Ticket ticket) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> Allocate(hal::Ticket ticket, uint64_t bytes) override;
  Status Free(hal::Ticket ticket, std::unique_ptr<hal::Memory> memory) override;
  Status Signal() override;
  Status Query() override;
  [[nodiscard]] hal::Ticket Completed() const noexcept override;
  [[nodiscard]] Result<hal::Ticket> Resolve(hal::Ticket wanted) override;
  Status Check() override;
  void TellTimes() override;

  /// Whether the ticket has completed, after a query of the driver if no word says so. Thread: channel.
  [[nodiscard]] bool HasCompleted(hal::Ticket ticket);

  [[nodiscard]] uint64_t NativeHandle() const override { return reinterpret_cast<uintptr_t>(handle_); }

 private:
  Stream(StreamSupport support, CUstream handle, const hal::StreamRequest& request, CUdeviceptr word)
      : support_(std::move(support)),
        context_(*support_.context),
        handle_(handle),
        is_foreign_(request.foreign.has_value()),
        slot_(request.slot),
        sink_(request.sink),
        word_(word) {}

  /// Queues one record: `call` submits the work and returns a Status, then the event follows.
  template <typename Call>
  Status Submit(hal::Ticket ticket, Use use, Call&& call);
  [[nodiscard]] protocol::DeviceTimes WantedTimes() const {
    return sink_ == nullptr ? protocol::DeviceTimes::kNone : sink_->WantedTimes();
  }
  static uint64_t NextPlaces();
  Status LaunchCall(hal::Ticket ticket, const hal::LaunchRequest& request);
  Status Prepare(hal::Ticket ticket, CUevent* event);
  Status Accept(hal::Ticket ticket, CUevent event);

  /// The other device that owns one end of a copy; null when none does. With the context current.
  [[nodiscard]] Result<std::shared_ptr<Context>> OtherOwner(const std::byte* dst, const std::byte* src);
  Status Fill64(CUdeviceptr dst, uint64_t pattern, uint64_t count);
  /// Queues only the wait. Locks `other`.
  Status WaitFor(Stream& other, hal::Ticket until);
  /// Whether a ticket's event has completed. Needs `mutex_` and the current context.
  Status Ask(hal::Ticket ticket, bool* is_complete);
  /// Whether the word for this ticket arrives soon by itself: a query costs more than another look at it. A word for a
  /// later ticket may arrive much later, and one beside copies waits for them.
  [[nodiscard]] bool WritesItself(hal::Ticket ticket) const noexcept;
  /// Finds the last complete ticket below an incomplete one. Needs `mutex_` and the current context.
  Status LookBelow(hal::Ticket ticket);
  void RaiseHostWord(hal::Ticket completed) noexcept;

  const StreamSupport support_;
  Context& context_;
  const CUstream handle_;
  const uint64_t first_place_ = NextPlaces();  // LibraryKernel::CallAs: with a ticket, no other record has it.
  const bool is_foreign_;                      // Wrapped: never destroyed, and never drained.
  protocol::TimelineSlot* const slot_;
  hal::ProgressSink* const sink_;  // Null in tests of this backend alone.
  const CUdeviceptr word_;

  TicketTimes times_{support_.clock, handle_};  // Thread: channel.

  LongWait long_wait_;  // For the callers of Resolve.
  // Thread: channel. Tickets of the words that may be in flight; the oldest is overwritten.
  std::array<hal::Ticket, 64> words_ = {};
  uint64_t words_written_ = 0;
  std::atomic<hal::Ticket> signalled_{0};  // Written by the channel: the last ticket whose word the stream writes.

  CUevent word_event_ = nullptr;  // Thread: channel. For a wrapped stream: follows the last write of the word.
  /// Thread: channel, or the blocking-calls thread while the stream has no work.
  CopiesThroughHost copies_through_host_;

  std::mutex mutex_;
  EventTable events_;  // Guarded by mutex_.
};

template <typename Call>
Status Stream::Submit(hal::Ticket ticket, Use use, Call&& call) {
  MR_TRY(context_.Alive());
  const std::shared_lock submitting(context_.submissions());
  // The event is acquired first: once the work is queued, nothing may fail.
  CUevent event = nullptr;
  MR_TRY(Prepare(ticket, &event));
  const protocol::DeviceTimes wanted = WantedTimes();
  if (wanted != protocol::DeviceTimes::kNone) {
    if (times_.AreMany()) TellTimes();
    times_.Before(ticket, use, Completed());
  }
  if (const Status status = call(); !status.ok()) {
    const std::lock_guard lock(mutex_);
    events_.Return(event);
    return status;
  }
  if (wanted != protocol::DeviceTimes::kNone) times_.After(ticket, use, wanted);
  return Accept(ticket, event);
}

}  // namespace millrace::cuda
