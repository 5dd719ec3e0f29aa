// Links relocatable code, whose kernels launch kernels, with CUDA's device runtime (libcudadevrt.a), which comes with
// toolkits and with Python packages and not with the driver. Thread: any. Takes some 40 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hal/status.h"

namespace millrace {

struct DeviceLinkRequest {
  /// Where the driver links, if it has to.
  uint32_t ordinal = 0;
  std::span<const std::byte> cubin;
  /// The device runtime's file.
  std::string library;
  /// sm_90
  std::string architecture;
};

struct DeviceLinkResult {
  bool ok = false;
  std::vector<std::byte> image;
  std::string log;
};

/// With nvJitLink where it can be opened and is as new as the code, else with the driver, which may be older than
/// the compiler and know less. A refusal is a result with its log; a Status means that nothing could be tried.
Result<DeviceLinkResult> LinkDeviceRuntime(const DeviceLinkRequest& request);

}  // namespace millrace
