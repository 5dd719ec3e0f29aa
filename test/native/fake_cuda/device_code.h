// The fake driver's kernels: functions in the CPU device's image format. The library's own kernels, which the driver
// receives as PTX, are found by name, compiled from their sources.
#pragma once

#include "cpu/shim/launch_abi.h"

namespace millrace::fake_cuda {

struct BuiltIn {
  const char* name;
  MrEntry entry;
  const unsigned* params;  // Their number, then the size of each.
};

/// Sets the condition of a graph's node, as a kernel does.
void SetConditional(unsigned long long handle, unsigned value);

/// Null when the library has no kernel of that name.
const BuiltIn* FindBuiltIn(const char* name);

}  // namespace millrace::fake_cuda
