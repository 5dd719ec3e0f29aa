#include "cuda/event_handle.h"

#include <cstring>
#include <tuple>

#include "cuda/context_scope.h"

namespace millrace::cuda {

using protocol::EventKind;

TimedEvents::~TimedEvents() {
  if (context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  for (const CUevent event : events_)
    std::ignore = context_->Check(Cuda().cuEventDestroy(event), "destroying an event");
}

Result<CUevent> TimedEvents::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      const CUevent event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  MR_TRY(context_->Check(Cuda().cuEventCreate(&event, CU_EVENT_DEFAULT), "creating a timestamp"));
  return event;
}

void TimedEvents::Return(CUevent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
}

Result<std::unique_ptr<hal::EventHandle>> EventHandle::Create(std::shared_ptr<TimedEvents> events, EventKind kind) {
  Context& context = *events->context();
  MR_TRY(context.Alive());
  const ContextScope scope(context.handle());
  MR_TRY(context.Check(scope.code(), "making the context current"));
  if (kind == EventKind::kTiming) {
    Result<CUevent> event = events->Take();
    MR_TRY(event.status());
    return std::unique_ptr<hal::EventHandle>(new EventHandle(std::move(events), kind, event.value()));
  }
  CUevent event = nullptr;
  MR_TRY(context.Check(Cuda().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS),
                       "creating an event that other processes can open"));
  return std::unique_ptr<hal::EventHandle>(new EventHandle(std::move(events), kind, event));
}

Result<std::unique_ptr<hal::EventHandle>> EventHandle::Open(std::shared_ptr<TimedEvents> events,
                                                            const hal::IpcHandle& handle) {
  Context& context = *events->context();
  MR_TRY(context.Alive());
  const ContextScope scope(context.handle());
  MR_TRY(context.Check(scope.code(), "making the context current"));
  CUipcEventHandle theirs;
  std::memcpy(&theirs, handle.data(), handle.size());
  CUevent event = nullptr;
  MR_TRY(context.CheckOpening(Cuda().cuIpcOpenEventHandle(&event, theirs), "opening an event of another process"));
  return std::unique_ptr<hal::EventHandle>(new EventHandle(std::move(events), EventKind::kInterprocess, event));
}

EventHandle::~EventHandle() {
  if (kind_ == EventKind::kTiming) {
    events_->Return(event_);
    return;
  }
  Context& context = *events_->context();
  if (context.is_lost()) return;
  const ContextScope scope(context.handle());
  if (scope.code() != CUDA_SUCCESS) return;
  std::ignore = context.Check(Cuda().cuEventDestroy(event_), "destroying an event");
}

Result<hal::IpcHandle> EventHandle::Export() const {
  if (kind_ != EventKind::kInterprocess) return Status(StatusCode::kArgument, "exporting a timestamp");
  Context& context = *events_->context();
  MR_TRY(context.Alive());
  const ContextScope scope(context.handle());
  MR_TRY(context.Check(scope.code(), "making the context current"));
  CUipcEventHandle ours;
  MR_TRY(context.CheckExport(Cuda().cuIpcGetEventHandle(&ours, event_), "exporting an event to other processes"));
  hal::IpcHandle handle;
  std::memcpy(handle.data(), &ours, handle.size());
  return handle;
}

Result<double> EventHandle::Since(const EventHandle& start) const {
  if (kind_ != EventKind::kTiming || start.kind_ != EventKind::kTiming) {
    return Status(StatusCode::kArgument, "measuring between events made without timing");
  }
  Context& context = *events_->context();
  MR_TRY(context.Alive());
  const ContextScope scope(context.handle());
  MR_TRY(context.Check(scope.code(), "making the context current"));
  float milliseconds = 0;
  const CUresult code = Cuda().cuEventElapsedTime(&milliseconds, start.event_, event_);
  if (code == CUDA_ERROR_NOT_READY || code == CUDA_ERROR_INVALID_HANDLE) {
    return Status(StatusCode::kState, "measuring between timestamps that the device has not reached",
                  static_cast<int32_t>(code));
  }
  MR_TRY(context.Check(code, "measuring between timestamps"));
  return double{milliseconds};
}

}  // namespace millrace::cuda
