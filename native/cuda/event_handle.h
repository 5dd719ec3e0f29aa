// Events: driver events that a user sees, apart from those that follow every record (event_table.h).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// A device's timed events that no event uses now. Each record of a timing event takes one from here.
class TimedEvents {
 public:
  explicit TimedEvents(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~TimedEvents();

  TimedEvents(const TimedEvents&) = delete;
  TimedEvents& operator=(const TimedEvents&) = delete;

  /// With the context current. Thread: any.
  Result<CUevent> Take();
  /// Its record must be complete, or nobody may ask for it again. Thread: any.
  void Return(CUevent event);

  [[nodiscard]] const std::shared_ptr<Context>& context() const { return context_; }

 private:
  const std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::vector<CUevent> events_;  // Guarded by mutex_.
};

class EventHandle final : public hal::EventHandle {
 public:
  static Result<std::unique_ptr<hal::EventHandle>> Create(std::shared_ptr<TimedEvents> events,
                                                          protocol::EventKind kind);
  /// An event of another process. kArgument when the handle is no good, kUnsupported when it is this process's own.
  static Result<std::unique_ptr<hal::EventHandle>> Open(std::shared_ptr<TimedEvents> events,
                                                        const hal::IpcHandle& handle);
  ~EventHandle() override;

  EventHandle(const EventHandle&) = delete;
  EventHandle& operator=(const EventHandle&) = delete;

  [[nodiscard]] Result<hal::IpcHandle> Export() const;
  /// Milliseconds since `start`, negative when this came first. kState unless both are recorded and complete.
  [[nodiscard]] Result<double> Since(const EventHandle& start) const;

  [[nodiscard]] CUevent event() const { return event_; }

 private:
  EventHandle(std::shared_ptr<TimedEvents> events, protocol::EventKind kind, CUevent event)
      : events_(std::move(events)), kind_(kind), event_(event) {}

  const std::shared_ptr<TimedEvents> events_;
  const protocol::EventKind kind_;
  const CUevent event_;
};

}  // namespace millrace::cuda
