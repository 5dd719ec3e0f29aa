// Loads NCCL, NVIDIA's library of collectives, if it is installed. Thread: any; searched for once.
#pragma once

#include <array>
#include <cstddef>

#include "cuda/driver_types.h"
#include "hal/library_plan.h"
#include "hal/status.h"

namespace millrace::cuda {

/// One rank.
using NcclComm = struct ncclComm*;

struct NcclUniqueId {
  std::array<std::byte, 128> bytes{};
};

enum NcclCode : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

struct NcclTable {
#define MR_NCCL(name, params) NcclCode(*name) params = nullptr;
#include "cuda/nccl_functions.def"
#undef MR_NCCL
  /// What the library says of the last failure of the process; null in versions before 2.13.
  const char* (*ncclGetLastError)(NcclComm comm) = nullptr;
};

struct NcclLibrary {
  NcclTable functions;
  hal::LibraryInfo info;
};

/// Null when there is none. If MILLRACE_NCCL names one, no other is searched for.
const NcclLibrary* OpenNccl();

/// While one exists, the environment has what the library has to read when ranks join, unless the user has decided. Not
/// longer, because child processes get it. Thread: any.
class NcclSettings {
 public:
  NcclSettings();
  ~NcclSettings();
  NcclSettings(const NcclSettings&) = delete;
  NcclSettings& operator=(const NcclSettings&) = delete;
};

/// The failure of one of its calls, by the name of its code.
Status NcclFailure(NcclCode code);

}  // namespace millrace::cuda
