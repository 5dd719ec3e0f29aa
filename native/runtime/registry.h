// The backends and the open channels of the process, channels by id.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hal/hal.h"
#include "runtime/channel.h"

namespace millrace {

class Registry {
 public:
  /// Never destroyed: native threads may outlive every static object.
  static Registry& Instance();

  /// Adds a backend; the preferred one first. Called when the addon loads.
  void AddBackend(std::unique_ptr<hal::Backend> backend);
  [[nodiscard]] hal::Backend* FindBackend(std::string_view name);
  [[nodiscard]] std::vector<hal::BackendReport> Enumerate();

  Result<std::shared_ptr<Channel>> Open(hal::Backend& backend, const Channel::Opening& opening);
  /// The id of a new channel of this process, or of one that another process has for it.
  uint32_t TakeId();
  /// Null if the device is not open any more.
  [[nodiscard]] std::shared_ptr<Channel> Find(uint32_t channel);
  void Remove(uint32_t channel);

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<hal::Backend>> backends_;
  std::unordered_map<uint32_t, std::shared_ptr<Channel>> channels_;
  uint32_t next_id_ = 1;
};

}  // namespace millrace
