// Compiles CUDA C++ to device code in this process, if NVRTC is installed. Thread: any; one build at a time.
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
  std::vector<int> architectures;  // 75, 80, 86, 90, ...: valid numbers for `-arch=sm_`. Empty if unknown.
};

struct NvrtcResult {
  bool ok = false;
  std::vector<std::byte> image;  // A cubin if the options name a real architecture (-arch=sm_90), else PTX.
  std::string log;               // Includes warnings.
};

/// The library, or null. If MILLRACE_NVRTC names one, no other is searched for. The first call searches folders.
const NvrtcInfo* NvrtcFind();

/// Compiles `source`; `name` is its file name in messages. Rejected source is a result with its log; an error Status
/// means that nothing was compiled: kUnavailable without NVRTC. Takes 10 ms, and 50 the first time.
Result<NvrtcResult> NvrtcCompile(const std::string& source, const std::string& name,
                                 std::span<const std::string> options);

}  // namespace millrace
