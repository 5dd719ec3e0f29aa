// Loads nvJitLink, NVIDIA's linker for device code, if it is installed. Thread: any; searched for once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cuda {

using JitLinkHandle = struct nvJitLink*;

enum JitLinkCode : unsigned int { NVJITLINK_SUCCESS = 0 };
enum JitLinkInput : unsigned int { NVJITLINK_INPUT_CUBIN = 1, NVJITLINK_INPUT_LIBRARY = 6 };

struct JitLinkTable {
#define MR_JIT_LINK(name, params) JitLinkCode(*name) params = nullptr;
#include "cuda/jit_link_functions.def"
#undef MR_JIT_LINK
};

/// Null when there is none. If MILLRACE_NVJITLINK names one, no other is searched for.
const JitLinkTable* OpenJitLink();

}  // namespace millrace::cuda
