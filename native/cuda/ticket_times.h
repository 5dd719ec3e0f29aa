// When the tickets of a stream ran, for a recorded timeline.
//
// A *mark* is an event with a timestamp. A stream that comes to one finishes its work before it starts on the next, so
// a mark between two kernels costs 2 us. So there is one behind a ticket, and none before it: work begins when the work
// before it has ended, or when the driver has accepted it. Short work shares a mark with what follows it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "cuda/device_clock.h"
#include "hal/progress.h"

namespace millrace::cuda {

/// What a ticket has the device do.
enum class Use : uint8_t {
  kNothing,  // No time passes.
  kWork,
  kWait,  // For other streams.
};

/// Thread: channel, with the context current.
class TicketTimes {
 public:
  TicketTimes(std::shared_ptr<DeviceClock> clock, CUstream stream) : clock_(std::move(clock)), stream_(stream) {}
  /// The stream is idle or destroyed, or the context is lost.
  ~TicketTimes() { Forget(); }
  TicketTimes(const TicketTimes&) = delete;
  TicketTimes& operator=(const TicketTimes&) = delete;

  /// Before the driver is given a ticket's work.
  void Before(hal::Ticket ticket, Use use, hal::Ticket completed);
  /// After it was.
  void After(hal::Ticket ticket, Use use, protocol::DeviceTimes wanted);
  /// Nothing follows for now.
  void End();
  /// Whether so much is untold that Tell should be called.
  [[nodiscard]] bool AreMany() const { return tickets_.size() >= kMany; }
  /// Tells the times of tickets up to `completed`. Has the clock compared if that has not happened, and AreMany.
  void Tell(hal::Ticket completed, hal::ProgressSink& sink);
  void Forget();

 private:
  /// More are told before the next ticket, and no event is kept for long.
  static constexpr size_t kMany = 256;
  /// So much work shares a mark: marks then take at most 4 % of the time of a busy stream,
  static constexpr uint64_t kWorkOfMark = 50'000;
  /// and of the time of a thread that hardly keeps its streams busy, by all of them. It needs 1.2 us to record one.
  static constexpr uint64_t kIssueOfMark = 24'000;
  /// Work that began so soon after it was issued.
  static constexpr uint64_t kSoon = 100'000;
  static constexpr uint32_t kMostShare = 64;

  struct TicketTime {
    hal::Ticket ticket;
    uint64_t issued;  // When the driver had accepted it.
    bool is_work;
    CUevent begin;  // Of the first ticket that is recorded: where what was not recorded ends.
    CUevent end;    // Null: it shares the next mark.
  };
  /// Null if the driver refuses it: the work then shares the next one.
  CUevent Mark();
  [[nodiscard]] bool NeedsMark(Use use, uint64_t now, protocol::DeviceTimes wanted) const;
  /// Tells the first `count` tickets. False if the device has not come to their mark yet.
  bool TellShare(size_t count, hal::ProgressSink& sink);
  void DropFirst();

  const std::shared_ptr<DeviceClock> clock_;
  const CUstream stream_;
  std::deque<TicketTime> tickets_;  // Untold.
  hal::Ticket last_ = 0;
  hal::Ticket last_work_ = 0;
  uint32_t unmarked_ = 0;    // Work behind the last mark.
  CUevent begin_ = nullptr;  // For the ticket that Before was called for.
  // Of told tickets, in nanoseconds of the steady clock.
  uint64_t ended_ = 0;
  double work_ = 0;  // The time of the last `works_` tickets; both fade.
  double works_ = 0;
  bool began_soon_ = false;  // The last share.
};

}  // namespace millrace::cuda
