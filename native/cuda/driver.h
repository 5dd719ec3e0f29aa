// The CUDA driver, loaded at run time: a function table that is filled once and never unloaded.
//
// The table can be used without a driver: every entry starts as a stub that returns CUDA_ERROR_NOT_FOUND, so no call
// goes through a null pointer. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "cuda/driver_types.h"

namespace millrace::cuda {

/// The oldest supported driver version, in the driver's format: 1000 * major + 10 * minor.
inline constexpr int kOldestDriver = 12000;

struct DriverTable {
#define MR_DRIVER(name, version, presence, params) CUresult(*name) params;
#include "cuda/driver_functions.def"
#undef MR_DRIVER
};

struct DriverReport {
  bool is_loaded = false;
  int version = 0;                // 0: no driver was found.
  std::string reason;             // Empty when loaded.
  std::vector<std::string> help;  // What the user can do.
};

namespace internal {
extern DriverTable driver_table;
}

/// Loads the driver, at each call until that succeeds. MILLRACE_CUDA_DRIVER names another
/// library.
DriverReport LoadDriver();

/// The function table: `Cuda().cuLaunchKernel(...)`.
inline const DriverTable& Cuda() {
  return internal::driver_table;
}

/// "12.4" for 12040.
std::string DriverVersionText(int version);

}  // namespace millrace::cuda
