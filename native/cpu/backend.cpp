#include "cpu/backend.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cpu/device.h"
#include "cpu/host_info.h"

namespace millrace {
namespace {

constexpr char kCountVariable[] = "MILLRACE_CPU_DEVICES";
constexpr uint32_t kMaxDevices = 16;
// Allows two streams to run concurrently on any machine.
constexpr uint32_t kMinThreads = 2;

// The requested number of devices; nothing when the variable holds anything else.
std::optional<uint32_t> DeviceCount(const char* text) {
  if (text == nullptr || *text == '\0') return 1;
  uint32_t count = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, count);
  if (error != std::errc() || rest != end || count < 1 || count > kMaxDevices) return std::nullopt;
  return count;
}

// What is left for the program and the system: if the device took it, the system would end the process.
uint64_t DeviceMemory() {
  const auto [total, available] = cpu::MemoryOfHost();
  return std::min(total / 5 * 4, available / 10 * 9);
}

hal::DeviceInfo Describe(uint32_t ordinal) {
  hal::DeviceInfo info;
  info.ordinal = ordinal;
  info.name = cpu::ModelName();
  info.total_memory_bytes = DeviceMemory();
  // The limits of a GPU, so that a launch that fits here also fits there.
#define MR_SET(member, name, attribute, on_cpu) info.member = on_cpu;
  MR_DEVICE_PROPERTIES(MR_SET)
#undef MR_SET
  info.multiprocessors = std::max(kMinThreads, std::thread::hardware_concurrency());
  info.max_block[0] = 1024;
  info.max_block[1] = 1024;
  info.max_block[2] = 64;
  info.max_grid[0] = 0x7fffffff;
  info.max_grid[1] = 65535;
  info.max_grid[2] = 65535;
  info.max_parameter_bytes = protocol::kMaxParameterBytes;
  info.texture_limits = {131072, 131072, 65536, 16384, 16384,   16384,  32768, 131072,
                         65536,  16384,  16384, 16384, 1 << 27, 131072, 65000, 2097120};
  info.least_priority = cpu::kLeastPriority;
  info.greatest_priority = cpu::kGreatestPriority;
  return info;
}

class CpuBackend final : public hal::Backend {
 public:
  [[nodiscard]] const char* name() const override { return "cpu"; }

  [[nodiscard]] hal::BackendReport Enumerate() override {
    std::lock_guard lock(mutex_);
    if (!report_) report_ = Probe();
    return *report_;
  }

  [[nodiscard]] Result<std::unique_ptr<hal::Device>> Open(uint32_t ordinal,
                                                          std::span<protocol::TimelineSlot>) override {
    hal::BackendReport report = Enumerate();
    if (ordinal >= report.devices.size()) return Status(StatusCode::kUnavailable, "finding the device");
    return cpu::CpuDevice::Open(std::move(report.devices[ordinal]));
  }

 private:
  hal::BackendReport Probe() {
    hal::BackendReport report;
    report.name = name();
    const char* text = std::getenv(kCountVariable);
    const std::optional<uint32_t> count = DeviceCount(text);
    if (!count) {
      report.reason = std::string("The number of CPU devices (") + text + ") is not one from 1 to " +
                      std::to_string(kMaxDevices) + '.';
      report.help.push_back(std::string("Set the environment variable ") + kCountVariable +
                            " to such a number, or unset it.");
      return report;
    }
    for (uint32_t ordinal = 0; ordinal < *count; ++ordinal) report.devices.push_back(Describe(ordinal));
    return report;
  }

  std::mutex mutex_;
  std::optional<hal::BackendReport> report_;  // Guarded by mutex_.
};

}  // namespace

std::unique_ptr<hal::Backend> MakeCpuBackend() {
  return std::make_unique<CpuBackend>();
}

}  // namespace millrace
