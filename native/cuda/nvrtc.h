// Compiles CUDA C++ to device code in this process, if NVRTC is installed. Thread: any; one build at a time.
#pragma once

#include <cstddef>
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

struct NvrtcHeader {
  std::string name;  // As sources include it: `stdio.h`.
  std::string text;
};

struct NvrtcSource {
  std::string text;
  std::string name;  // Its file name in messages.
  std::vector<std::string> options;
  std::vector<NvrtcHeader> headers = {};  // Found before any file.
  std::vector<std::string> kernels = {};  // C++ names to translate: `reduce<float, 256>`. A template is instantiated.
};

struct NvrtcResult {
  bool ok = false;
  std::vector<std::byte> image;      // A cubin if the options name a real architecture (-arch=sm_90), else PTX.
  std::vector<std::string> symbols;  // For each of the source's kernels, its symbol in the image.
  std::string log;                   // Includes warnings.
};

/// The library, or null. If MILLRACE_NVRTC names one, no other is searched for. The first call searches folders.
const NvrtcInfo* NvrtcFind();

/// Rejected source is a result with its log; an error Status means that nothing was compiled: kUnavailable without
/// NVRTC. Takes 10 ms, and 50 the first time.
Result<NvrtcResult> NvrtcCompile(const NvrtcSource& source);

}  // namespace millrace
