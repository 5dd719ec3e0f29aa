#include "cuda/device_clock.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"

namespace millrace::cuda {

DeviceClock::~DeviceClock() {
  Context& context = *events_->context();
  if (context.is_lost()) return;
  const ContextScope scope(context.handle());
  if (scope.code() != CUDA_SUCCESS) return;
  for (const Mark& mark : marks_) {
    if (mark.event != nullptr) events_->Return(mark.event);
  }
  if (stream_ != nullptr) std::ignore = context.Check(Cuda().cuStreamDestroy(stream_), "destroying a stream");
}

Status DeviceClock::Align() {
  Context& context = *events_->context();
  MR_TRY(context.Alive());
  const ContextScope scope(context.handle());
  MR_TRY(context.Check(scope.code(), "making the context current"));
  const std::lock_guard lock(mutex_);
  if (stream_ == nullptr) {
    MR_TRY(context.Check(Cuda().cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0), "creating a stream"));
  }
  Mark best;
  uint64_t shortest = UINT64_MAX;
  for (int n = 0; n < kTries; ++n) {
    Result<CUevent> event = events_->Take();
    MR_TRY(event.status());
    const uint64_t before = hal::SteadyNow();
    CUresult code = Cuda().cuEventRecord(event.value(), stream_);
    if (code == CUDA_SUCCESS) code = Cuda().cuEventSynchronize(event.value());
    const uint64_t took = hal::SteadyNow() - before;
    const bool is_better = code == CUDA_SUCCESS && took < shortest;
    const CUevent other = is_better ? std::exchange(best.event, event.value()) : event.value();
    if (is_better) {
      shortest = took;
      best.host = before + took / 2;
    }
    if (other != nullptr) events_->Return(other);
    MR_TRY(context.Check(code, "reading the device's clock"));
  }
  Mark& oldest = marks_[made_++ % kMarks];
  if (oldest.event != nullptr) events_->Return(oldest.event);
  oldest = best;
  return {};
}

bool DeviceClock::HasMark() {
  const std::lock_guard lock(mutex_);
  return made_ != 0;
}

std::optional<uint64_t> DeviceClock::TimeOf(CUevent event) {
  const std::lock_guard lock(mutex_);
  std::optional<uint64_t> time;
  for (uint64_t n = 0; n < std::min<uint64_t>(made_, kMarks); ++n) {
    const Mark& mark = marks_[(made_ - 1 - n) % kMarks];
    float milliseconds = 0;
    if (Cuda().cuEventElapsedTime(&milliseconds, mark.event, event) != CUDA_SUCCESS) return std::nullopt;
    time = mark.host + static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
    if (milliseconds >= 0) break;
  }
  return time;
}

}  // namespace millrace::cuda
