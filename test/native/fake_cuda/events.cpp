// The fake driver's events: untimed, timed, and those that processes share.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "entry.h"

namespace millrace::fake_cuda {

namespace {

/// The content of an event's handle.
struct EventHandle {
  int process;
  int file;
};

bool IsReached(Event& event) {
  const std::lock_guard lock(event.mutex);
  if (event.shared != nullptr) return event.shared->reached.load() >= event.shared->recorded.load();
  return event.point == nullptr || event.point->IsReached();
}

/// Waits until other processes have also reached `sequence`.
void AwaitShared(const SharedEvent& shared, uint64_t sequence, const Device& device) {
  while (shared.reached.load() < sequence && device.lost.load() == 0) std::this_thread::yield();
}

}  // namespace

}  // namespace millrace::fake_cuda

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  MR_ENTER("cuStreamWaitEvent", Name(stream) + " " + Name(event));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  Event& source = *FromHandle(event);
  if (const int lost = source.device.lost.load(); lost != 0) return static_cast<CUresult>(lost);
  std::optional<CapturedPoint> captured;
  {
    const std::lock_guard lock(source.mutex);
    captured = source.captured;
  }
  if (captured) return queue->Join(*captured) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  // Of an event from before the capture, only a wait that says so.
  if (queue->CapturePoint()) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (const SharedEvent* const shared = source.shared; shared != nullptr) {
    const uint64_t sequence = shared->recorded.load();
    if (shared->reached.load() >= sequence) return CUDA_SUCCESS;
    queue->Push([shared, sequence, device] { AwaitShared(*shared, sequence, *device); });
    return CUDA_SUCCESS;
  }
  std::shared_ptr<Point> point;
  {
    const std::lock_guard lock(source.mutex);
    point = source.point;
  }
  if (point != nullptr && !point->IsReached()) queue->Push([point] { point->Await(); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  MR_ENTER("cuEventCreate", "flags=" + std::to_string(flags));
  MR_CURRENT(device);
  if (flags != CU_EVENT_DEFAULT && flags != CU_EVENT_DISABLE_TIMING &&
      flags != (CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(GetWorld().mutex);
  auto* made = new Event{*device, GetWorld().next_number++, flags, {}, nullptr};
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    made->shared = static_cast<SharedEvent*>(MapNew(sizeof(SharedEvent), &made->file));
  }
  device->events.insert(made);
  *event = reinterpret_cast<CUevent>(made);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  MR_ENTER("cuEventDestroy", Name(event));
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  if (FromHandle(event)->device.events.erase(FromHandle(event)) == 0) return CUDA_ERROR_INVALID_HANDLE;
  // The mapping stays: a stream may still write it.
  if (FromHandle(event)->file >= 0) close(FromHandle(event)->file);
  delete FromHandle(event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  MR_ENTER("cuEventRecord", Name(event) + " " + Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (&FromHandle(event)->device != device) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(FromHandle(event)->mutex);
  FromHandle(event)->captured = queue->CapturePoint();
  if (FromHandle(event)->captured) return CUDA_SUCCESS;
  if (SharedEvent* const shared = FromHandle(event)->shared; shared != nullptr) {
    const uint64_t sequence = shared->recorded.fetch_add(1) + 1;
    queue->Push([shared, sequence] {
      uint64_t seen = shared->reached.load();
      while (seen < sequence && !shared->reached.compare_exchange_weak(seen, sequence)) {
      }
    });
  }
  FromHandle(event)->point = queue->PushPoint();
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  MR_ENTER("cuEventQuery", Name(event));
  MR_CURRENT(device);
  {
    const std::lock_guard lock(FromHandle(event)->mutex);
    if (FromHandle(event)->captured) return CUDA_ERROR_CAPTURED_EVENT;
  }
  return IsReached(*FromHandle(event)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  MR_ENTER("cuEventSynchronize", Name(event));
  MR_CURRENT(device);
  while (!IsReached(*FromHandle(event)) && device->lost.load() == 0) std::this_thread::yield();
  ShrinkPool(*device);
  return static_cast<CUresult>(device->lost.load());
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  MR_ENTER("cuEventElapsedTime");
  MR_CURRENT(device);
  std::shared_ptr<Point> points[2];
  for (int i = 0; i < 2; ++i) {
    Event& event = *FromHandle(i == 0 ? start : end);
    if (&event.device != device || event.flags != CU_EVENT_DEFAULT) return CUDA_ERROR_INVALID_HANDLE;
    const std::lock_guard lock(event.mutex);
    if (event.point == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    points[i] = event.point;
  }
  if (!points[0]->IsReached() || !points[1]->IsReached()) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(points[1]->time() - points[0]->time()).count();
  return CUDA_SUCCESS;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  MR_ENTER("cuIpcGetEventHandle", Name(event));
  if (FromHandle(event)->file < 0) return CUDA_ERROR_INVALID_HANDLE;
  const EventHandle said = {getpid(), FromHandle(event)->file};
  *handle = {};
  std::memcpy(handle, &said, sizeof(said));
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  MR_ENTER("cuIpcOpenEventHandle");
  MR_CURRENT(device);
  EventHandle said;
  std::memcpy(&said, &handle, sizeof(said));
  if (said.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  void* const mapped = MapTheirs(said.process, said.file, sizeof(SharedEvent));
  if (mapped == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const std::lock_guard lock(GetWorld().mutex);
  auto* made =
      new Event{*device, GetWorld().next_number++, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, {}, nullptr};
  made->shared = static_cast<SharedEvent*>(mapped);
  device->events.insert(made);
  *event = reinterpret_cast<CUevent>(made);
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda
