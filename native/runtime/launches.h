// What LAUNCH records, and those among the nodes of a graph, have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hal/hal.h"
#include "runtime/failures.h"

namespace millrace {

/// A kernel that was built, or that could not be.
struct KernelEntry {
  std::shared_ptr<hal::Kernel> kernel;  // Null when it could not be built.
  bool is_checked = false;
  Status failure;
};

constexpr bool Reads(uint8_t access) {
  return (access & static_cast<uint8_t>(protocol::Access::kRead)) != 0;
}
constexpr bool Writes(uint8_t access) {
  return (access & static_cast<uint8_t>(protocol::Access::kWrite)) != 0;
}
constexpr bool IsCooperative(const protocol::LaunchRecord& record) {
  return (record.flags & static_cast<uint32_t>(protocol::LaunchFlag::kCooperative)) != 0;
}

/// A failure if the launch exceeds the kernel's limits. The owner could not check them, because the kernel was not
/// built yet at the call.
[[nodiscard]] std::optional<Failure> BeyondLimits(const protocol::LaunchRecord& record, hal::Kernel& kernel);

}  // namespace millrace
