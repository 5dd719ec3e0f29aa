// The CUDA driver, opened at run time: a table of functions that is filled once and never unloaded.
//
// The table is usable before and without a driver: every entry starts as a trampoline that returns
// CUDA_ERROR_NOT_FOUND, so that no call ever goes through a null pointer. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "cuda/driver_types.h"

namespace millrace::cuda {

/// The oldest driver taken, as the driver itself writes versions: 1000 times major plus 10 times minor.
inline constexpr int kOldestDriver = 12000;

struct DriverTable {
#define MR_DRIVER(name, version, presence, params) CUresult(*name) params;
#include "cuda/driver_functions.def"
#undef MR_DRIVER
};

struct DriverReport {
  bool is_loaded = false;
  int version = 0;                // 0: no driver answered.
  std::string reason;             // Empty when loaded.
  std::vector<std::string> help;  // What the user can do about it.
};

namespace internal {
extern DriverTable driver_table;
}

/// Opens the driver the first time it is called and remembers how that went. MILLRACE_CUDA_DRIVER names another
/// library.
const DriverReport& LoadDriver();

/// How every driver call is written: `Cuda().cuLaunchKernel(...)`.
inline const DriverTable& Cuda() {
  return internal::driver_table;
}

/// "12.4" of 12040.
std::string DriverVersionText(int version);

}  // namespace millrace::cuda
