// The host memory that a device has page-locked. The driver refuses to lock pages twice, and several threads of a
// device may register the same pages, so each locked range counts the handles that name it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/device_access.h"

namespace millrace {

/// mutex_ guards the list. It is held while the driver locks or unlocks, which may take long.
class PageLocks {
 public:
  explicit PageLocks(DeviceAccess& device) : device_(device) {}

  /// Page-locks the bytes, unless a range that has them all is locked already. Thread: control.
  Status Lock(std::span<std::byte> bytes);
  /// Thread: control.
  Status Unlock(std::span<std::byte> bytes);
  /// The device closes. Thread: channel.
  void UnlockAll();
  /// Of all locked ranges. Thread: any.
  [[nodiscard]] uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct LockedPages {
    std::span<std::byte> bytes;
    uint32_t handles = 0;  // How many name all or a part of it.
  };
  LockedPages* Find(std::span<std::byte> bytes);

  DeviceAccess& device_;
  std::atomic<uint64_t> bytes_{0};
  std::mutex mutex_;
  std::vector<LockedPages> locked_;  // Guarded by mutex_.
};

}  // namespace millrace
