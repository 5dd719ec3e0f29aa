#include "cuda/ending_devices.h"

#include <chrono>
#include <map>
#include <mutex>

namespace millrace::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// A little less than the 5 s after which `destroy` rejects (DESTROY_MS in hung-device.ts), because the device is
/// added a moment after the call.
constexpr std::chrono::milliseconds kHung(4500);

struct Ending {
  uint32_t ordinal = 0;
  Clock::time_point since;
};

struct Table {
  std::mutex mutex;
  std::map<const void*, Ending> devices;  // Guarded by mutex.
};

Table& Endings() {
  // Never destroyed, because native threads may outlive static objects.
  static auto* table = new Table;
  return *table;
}

}  // namespace

void EndingDevices::Add(uint32_t ordinal, const void* device) {
  Table& table = Endings();
  const std::lock_guard lock(table.mutex);
  table.devices.try_emplace(device, Ending{ordinal, Clock::now()});
}

void EndingDevices::Remove(const void* device) {
  Table& table = Endings();
  const std::lock_guard lock(table.mutex);
  table.devices.erase(device);
}

bool EndingDevices::HasHung(uint32_t ordinal) {
  Table& table = Endings();
  const std::lock_guard lock(table.mutex);
  for (const auto& [device, ending] : table.devices) {
    if (ending.ordinal == ordinal && Clock::now() - ending.since >= kHung) return true;
  }
  return false;
}

}  // namespace millrace::cuda
