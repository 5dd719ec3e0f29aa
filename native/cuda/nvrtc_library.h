// Finds and opens NVRTC, NVIDIA's run-time compiler, which ships with toolkits and Python packages but not with the
// driver. Thread: any; searched for once.
#pragma once

#include <cstddef>

#include "cuda/nvrtc.h"

namespace millrace::cuda {

using NvrtcProgram = struct _nvrtcProgram*;

enum NvrtcCode : unsigned int {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_COMPILATION = 6,
};

struct NvrtcTable {
#define MR_NVRTC(name, params) NvrtcCode(*name) params = nullptr;
#include "cuda/nvrtc_functions.def"
#undef MR_NVRTC
};

struct NvrtcLibrary {
  NvrtcTable functions;
  NvrtcInfo info;
};

/// Null when there is none.
const NvrtcLibrary* OpenNvrtc();

}  // namespace millrace::cuda
