// Links relocatable device code, whose kernels launch kernels, with CUDA's device runtime (libcudadevrt.a), which ships
// with toolkits and Python packages but not with the driver. Thread: any. Takes about 40 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hal/status.h"

namespace millrace {

struct DeviceLinkRequest {
  /// The device whose context links, if the driver has to.
  uint32_t ordinal = 0;
  std::span<const std::byte> cubin;
  /// Path of the device runtime.
  std::string library;
  /// sm_90
  std::string architecture;
};

struct DeviceLinkResult {
  bool ok = false;
  std::vector<std::byte> image;
  std::string log;
};

/// Links with nvJitLink if it is installed and not older than the code, else with the driver, which may be older than
/// the compiler. A rejection is a result with its log; an error Status means that no linker could run.
Result<DeviceLinkResult> LinkDeviceRuntime(const DeviceLinkRequest& request);

}  // namespace millrace
