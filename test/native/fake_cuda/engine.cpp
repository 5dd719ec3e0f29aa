#include "engine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "cuda/driver_errors.h"
#include "options.h"

namespace millrace::fake_cuda {

void Point::Reach() {
  const std::lock_guard lock(mutex_);
  is_reached_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

bool Point::IsReached() {
  const std::lock_guard lock(mutex_);
  return is_reached_;
}

std::chrono::steady_clock::time_point Point::time() {
  const std::lock_guard lock(mutex_);
  return time_;
}

void Point::Await() {
  std::unique_lock lock(mutex_);
  // A loss notifies no thread, so this polls for it.
  while (!is_reached_ && device_.lost.load() == 0) changed_.wait_for(lock, std::chrono::milliseconds(1));
}

void Stream::Start() {
  // The thread keeps its stream alive; it is never joined.
  std::thread([self = shared_from_this()] { self->Run(); }).detach();
}

void Stream::End() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  changed_.notify_one();
}

void Stream::Push(std::function<void()> operation) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(operation));
  changed_.notify_one();
}

std::shared_ptr<Point> Stream::PushPoint() {
  auto point = std::make_shared<Point>(device);
  Push([point] { point->Reach(); });
  return point;
}

bool Stream::IsIdle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !is_busy_;
}

/// The capture that it is in; null if that is over. Call with mutex_ held.
std::shared_ptr<Capture> Stream::Capturing() {
  if (capture_ == nullptr) return nullptr;
  const std::lock_guard lock(capture_->mutex);
  return capture_->is_over ? nullptr : capture_;
}

bool Stream::BeginCapture() {
  const std::lock_guard lock(mutex_);
  if (Capturing() != nullptr) return false;
  capture_ = std::make_shared<Capture>();
  began_capture_ = true;
  return true;
}

CUresult Stream::EndCapture(std::vector<Capture::Work>& works) {
  const std::lock_guard own(mutex_);
  const std::shared_ptr<Capture> capture = Capturing();
  if (capture == nullptr || !std::exchange(began_capture_, false)) return cuda::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const std::lock_guard lock(capture->mutex);
  capture->is_over = true;
  if (capture->is_broken) return cuda::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::set<size_t> reached;
  std::vector<size_t> open(capture->tips[this].begin(), capture->tips[this].end());
  while (!open.empty()) {
    const size_t work = open.back();
    open.pop_back();
    if (reached.insert(work).second)
      open.insert(open.end(), capture->works[work].after.begin(), capture->works[work].after.end());
  }
  if (reached.size() != capture->works.size()) return cuda::CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  works = std::move(capture->works);
  return cuda::CUDA_SUCCESS;
}

bool Stream::BreakCapture() {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = Capturing();
  if (capture == nullptr) return false;
  const std::lock_guard guard(capture->mutex);
  capture->is_broken = true;
  return true;
}

bool Stream::Captures(const std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = Capturing();
  if (capture == nullptr) return false;
  const std::lock_guard guard(capture->mutex);
  std::set<size_t>& tips = capture->tips[this];
  capture->works.push_back({work, tips});
  tips = {capture->works.size() - 1};
  return true;
}

std::optional<CapturedPoint> Stream::CapturePoint() {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = Capturing();
  if (capture == nullptr) return std::nullopt;
  const std::lock_guard guard(capture->mutex);
  return CapturedPoint{capture, capture->tips[this]};
}

bool Stream::Join(const CapturedPoint& point) {
  const std::lock_guard lock(mutex_);
  if (const std::shared_ptr<Capture> capture = Capturing(); capture != nullptr && capture != point.capture)
    return false;
  const std::lock_guard guard(point.capture->mutex);
  if (point.capture->is_over) return false;
  if (capture_ != point.capture) {
    // What is queued does not belong to it.
    capture_ = point.capture;
    began_capture_ = false;
  }
  point.capture->tips[this].insert(point.after.begin(), point.after.end());
  return true;
}

void Stream::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty() || is_ending_; });
    if (queue_.empty()) return;
    const std::function<void()> operation = std::move(queue_.front());
    queue_.pop_front();
    is_busy_ = true;
    lock.unlock();
    if (device.lost.load() == 0) operation();
    lock.lock();
    is_busy_ = false;
  }
}

std::map<uintptr_t, Range>::iterator World::Find(uintptr_t address, uint64_t bytes) {
  auto range = ranges.upper_bound(address);
  if (range == ranges.begin()) return ranges.end();
  --range;
  return address + bytes <= range->first + range->second.bytes ? range : ranges.end();
}

void World::Erase(std::map<uintptr_t, Range>::iterator range) {
  const auto& [address, what] = *range;
  switch (what.kind) {
    case Range::Kind::kDevice:
      what.device->used_bytes -= what.bytes;
      [[fallthrough]];
    case Range::Kind::kOpened:
      munmap(reinterpret_cast<void*>(address), what.bytes);
      if (what.file >= 0) close(what.file);
      break;
    case Range::Kind::kPool:
      what.device->pool.used -= what.bytes;
      [[fallthrough]];
    case Range::Kind::kHost:
      std::free(reinterpret_cast<void*>(address));
      break;
    case Range::Kind::kVariable:
    case Range::Kind::kRegistered:
      break;
  }
  ranges.erase(range);
}

void ThreadPool::Shrink(uint64_t keep) {
  reserved = std::max(InUse(), std::min(reserved, keep));
}

void* MapNew(size_t bytes, int* file) {
  *file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (*file < 0 || ftruncate(*file, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

void* MapTheirs(int process, int file, size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  const int own = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) return nullptr;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
  close(own);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

World& GetWorld() {
  static World* world = [] {
    auto* made = new World();
    for (int ordinal = 0; ordinal < GetOptions().devices; ++ordinal) {
      made->devices.push_back(std::make_unique<Device>());
      made->devices.back()->ordinal = ordinal;
    }
    return made;
  }();
  return *world;
}

void Lose(Device& device, int code) {
  const std::unique_lock lock(device.using_memory);
  device.lost.store(code);
}

CUresult Enter(const char* function, const std::string& detail) {
  const CUresult code = Injected(function);
  Log(function, code == cuda::CUDA_SUCCESS ? detail : detail + " fails=" + std::to_string(code));
  if (code != cuda::CUDA_SUCCESS) Say(function, code);
  if (Device* const device = CurrentContexts().empty() ? nullptr : FromHandle(CurrentContexts().back());
      device != nullptr && cuda::IsSticky(code))
    Lose(*device, code);
  return code;
}

Stream* FindStream(cuda::CUstream handle, Device& device) {
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  if (reinterpret_cast<uintptr_t>(handle) <= 1) {
    if (device.legacy == nullptr) {
      device.legacy = std::make_shared<Stream>(device, 0, 0);
      device.legacy->Start();
    }
    return device.legacy.get();
  }
  for (const std::unique_ptr<Device>& each : world.devices) {
    for (const std::shared_ptr<Stream>& stream : each->streams) {
      if (stream.get() == reinterpret_cast<Stream*>(handle)) return stream.get();
    }
  }
  return nullptr;
}

std::vector<cuda::CUcontext>& CurrentContexts() {
  thread_local std::vector<cuda::CUcontext> contexts;
  return contexts;
}

GreenContext* GreenOf(cuda::CUcontext context) {
  const auto address = reinterpret_cast<uintptr_t>(context);
  return address % 2 == 0 ? nullptr : reinterpret_cast<GreenContext*>(address - 1);
}

Device* FromHandle(cuda::CUcontext context) {
  GreenContext* const green = GreenOf(context);
  return green == nullptr ? reinterpret_cast<Device*>(context) : green->device;
}

GreenContext* CurrentGreen() {
  return CurrentContexts().empty() ? nullptr : GreenOf(CurrentContexts().back());
}

CUresult Current(Device** device) {
  if (CurrentContexts().empty() || CurrentContexts().back() == nullptr) return cuda::CUDA_ERROR_INVALID_CONTEXT;
  *device = FromHandle(CurrentContexts().back());
  return static_cast<CUresult>((*device)->lost.load());
}

}  // namespace millrace::fake_cuda
