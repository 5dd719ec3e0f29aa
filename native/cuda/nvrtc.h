// CUDA C++ to device code in this process, where NVRTC is installed. Thread: any; one build at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hal/status.h"

namespace millrace {

struct NvrtcInfo {
  std::string path;
  int major = 0;
  int minor = 0;
  std::vector<int> architectures;  // 75, 80, 86, 90, ...: what `-arch=sm_` may be followed by. Empty when not told.
};

struct NvrtcResult {
  bool ok = false;
  std::vector<std::byte> image;  // A cubin when the options name a real architecture (-arch=sm_90), else PTX.
  std::string log;               // Warnings too.
};

/// The library found, or null. MILLRACE_NVRTC names one; then no other is looked for. The first call searches folders.
const NvrtcInfo* NvrtcFind();

/// Compiles `source`, which messages call `name`. A program that is not accepted is a result with its log; a Status
/// means that nothing was compiled: kUnavailable when there is no NVRTC. Takes 10 ms, the first time of a process 50.
Result<NvrtcResult> NvrtcCompile(const std::string& source, const std::string& name,
                                 std::span<const std::string> options);

}  // namespace millrace
