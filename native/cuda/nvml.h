// What NVML, NVIDIA's library for monitoring, tells of GPUs. It comes with the driver and is opened at the first call;
// MILLRACE_NVML names another one. Thread: any but an event loop's, because the calls take milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hal/status.h"

namespace millrace::cuda {

struct XidError {
  uint64_t code = 0;
  double ago_ms = 0;  // Since it was noticed.
};

/// Without what the GPU, or its driver, does not tell. Of a slice of a GPU (MIG), the clocks, the temperature, the
/// power, the reasons and the errors are those of the GPU.
struct GpuTelemetry {
  std::string uuid;
  std::string name;
  bool is_slice = false;
  std::optional<double> busy_percent;
  std::optional<double> memory_busy_percent;
  std::optional<double> memory_used_bytes;
  std::optional<double> memory_total_bytes;
  std::optional<double> graphics_mhz;
  std::optional<double> sm_mhz;
  std::optional<double> memory_mhz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> throttle_reasons;  // Bits, as NVML has them.
  /// Noticed since this process first asked for this GPU, the newest last.
  std::vector<XidError> xids;
};

/// Of the CUDA device with this ordinal. kUnavailable without NVML; kUnsupported if it does not know the device.
Result<GpuTelemetry> TelemetryOf(uint32_t ordinal);
/// Of all GPUs of the machine, whatever CUDA_VISIBLE_DEVICES says; of a GPU with slices, these follow it.
Result<std::vector<GpuTelemetry>> TelemetryOfAll();

}  // namespace millrace::cuda
