#include "runtime/page_locks.h"

#include <algorithm>

#include "runtime/host_copy.h"

namespace millrace {
namespace {

/// Waking the threads that help would take longer.
constexpr size_t kLeastTouched = 1 << 20;

}  // namespace

/// mutex_ is held.
PageLocks::LockedPages* PageLocks::Find(std::span<std::byte> bytes) {
  const auto has_it = [&](const LockedPages& pages) {
    return pages.bytes.data() <= bytes.data() && bytes.data() + bytes.size() <= pages.bytes.data() + pages.bytes.size();
  };
  const auto found = std::find_if(locked_.begin(), locked_.end(), has_it);
  return found == locked_.end() ? nullptr : &*found;
}

Status PageLocks::Lock(std::span<std::byte> bytes) {
  std::lock_guard lock(mutex_);
  if (LockedPages* const known = Find(bytes)) {
    ++known->handles;
    return {};
  }
  // The driver's thread alone would take several times as long for fresh pages.
  if (bytes.size() >= kLeastTouched) TouchPages(bytes);
  const Status status = device_.With([&](hal::Device& device) { return device.RegisterHost(bytes); });
  if (!status.ok()) return status;
  bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
  locked_.push_back({bytes, 1});
  return status;
}

Status PageLocks::Unlock(std::span<std::byte> bytes) {
  std::lock_guard lock(mutex_);
  LockedPages* const known = Find(bytes);
  if (known == nullptr || --known->handles > 0) return {};
  const std::span<std::byte> pages = known->bytes;
  locked_.erase(locked_.begin() + (known - locked_.data()));
  bytes_.fetch_sub(pages.size(), std::memory_order_relaxed);
  return device_.With([&](hal::Device& device) { return device.UnregisterHost(pages); });
}

void PageLocks::UnlockAll() {
  std::lock_guard lock(mutex_);
  // Before the bytes can be released, always. A refusal leaves nothing to be done on the way out.
  for (const LockedPages& pages : locked_) static_cast<void>(device_.device().UnregisterHost(pages.bytes));
  locked_.clear();
  bytes_.store(0, std::memory_order_relaxed);
}

}  // namespace millrace
