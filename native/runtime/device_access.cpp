#include "runtime/device_access.h"

#include <utility>

namespace millrace {

Status DeviceAccess::Open(uint32_t ordinal, std::span<protocol::TimelineSlot> timeline) {
  auto opened = backend_.Open(ordinal, timeline);
  if (!opened.ok()) return opened.status();
  device_ = std::move(opened).value();
  needs_polling_ = device_->NeedsPolling();
  needs_locked_memory_ = device_->NeedsLockedMemory();
  return {};
}

std::shared_lock<std::shared_mutex> DeviceAccess::KeepOpen() {
  std::shared_lock lock(closing_mutex_);
  if (is_shut_) lock.unlock();
  return lock;
}

Result<protocol::PeerRoute> DeviceAccess::ProbePeer(DeviceAccess& other) {
  DeviceAccess& lower = id_ < other.id_ ? *this : other;
  DeviceAccess& higher = id_ < other.id_ ? other : *this;
  const std::shared_lock lower_lock(lower.closing_mutex_);
  const std::shared_lock higher_lock(higher.closing_mutex_);
  if (is_shut_ || other.is_shut_) return Closed();
  return device_->ProbePeer(*other.device_);
}

Status DeviceAccess::Closed() {
  return Status(StatusCode::kState, "the device was closed");
}

}  // namespace millrace
