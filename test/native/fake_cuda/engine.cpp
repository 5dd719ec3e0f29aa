#include "engine.h"

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
  changed_.notify_all();
}

bool Point::IsReached() {
  const std::lock_guard lock(mutex_);
  return is_reached_;
}

void Point::Await() {
  std::unique_lock lock(mutex_);
  // A loss wakes nobody, so it is looked for.
  while (!is_reached_ && device_.lost.load() == 0) changed_.wait_for(lock, std::chrono::milliseconds(1));
}

void Stream::Start() {
  // The thread keeps its stream alive; nobody joins it.
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
  if (range->second.kind == Range::Kind::kDevice) range->second.device->used_bytes -= range->second.bytes;
  if (range->second.kind != Range::Kind::kRegistered) std::free(reinterpret_cast<void*>(range->first));
  ranges.erase(range);
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

CUresult Enter(const char* function, const std::string& detail) {
  Log(function, detail);
  const CUresult code = Injected(function);
  if (cuda::IsSticky(code) && !CurrentDevices().empty()) CurrentDevices().back()->lost.store(code);
  return code;
}

std::vector<Device*>& CurrentDevices() {
  thread_local std::vector<Device*> devices;
  return devices;
}

CUresult Current(Device** device) {
  if (CurrentDevices().empty() || CurrentDevices().back() == nullptr) return cuda::CUDA_ERROR_INVALID_CONTEXT;
  *device = CurrentDevices().back();
  return static_cast<CUresult>((*device)->lost.load());
}

}  // namespace millrace::fake_cuda
