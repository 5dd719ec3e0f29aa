// Driver events behind the user's timing and interprocess events. The events after every record are in event_table.h.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// A device's unused timed events. Each record of a timing event takes one.
class TimedEvents {
 public:
  explicit TimedEvents(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~TimedEvents();

  TimedEvents(const TimedEvents&) = delete;
  TimedEvents& operator=(const TimedEvents&) = delete;

  /// With the context current. Thread: any.
  Result<CUevent> Take();
  /// The event's record must be complete, or its time must never be queried again. Thread: any.
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
  /// Opens another process's event. kArgument for an invalid handle, kUnsupported for a handle from this process.
  static Result<std::unique_ptr<hal::EventHandle>> Open(std::shared_ptr<TimedEvents> events,
                                                        const hal::IpcHandle& handle);
  ~EventHandle() override;

  EventHandle(const EventHandle&) = delete;
  EventHandle& operator=(const EventHandle&) = delete;

  [[nodiscard]] Result<hal::IpcHandle> Export() const;
  /// Milliseconds since `start`; negative if this event came first. kState unless both are recorded and complete.
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
