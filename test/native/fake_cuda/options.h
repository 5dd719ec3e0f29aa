// The fake driver's environment variables, and its two extra features: a log, and failures on request.
//
//   MILLRACE_FAKE_CUDA_DEVICES   how many devices (2; 0 is a machine without any)
//   MILLRACE_FAKE_CUDA_VERSION   what the driver calls itself (13000)
//   MILLRACE_FAKE_CUDA_MEMORY    bytes of one device (1 GiB)
//   MILLRACE_FAKE_CUDA_DELAY_US  how much longer every copy, fill and kernel takes (0)
//   MILLRACE_FAKE_CUDA_MISSING   functions this driver does not have: "cuMemAllocAsync,cuStreamWriteValue64"
//   MILLRACE_FAKE_CUDA_LOG       a file for one line per call, in the order of the calls; "fails=719" if made to fail
//   MILLRACE_FAKE_CUDA_FAIL      "cuLaunchKernel:3:719,kernel:2:700": the third call of that function returns 719; the
//                                second kernel that runs faults with 700. Sticky codes lose the current device.
//                                "5000ms" in place of a code: the call takes 5 s longer. A count of 0 means every call,
//                                and the function "*" every function. "@file": the file's text, read again at each
//                                call.
//   MILLRACE_FAKE_CUDA_SAYS      lines (\n) that the driver's own log has before such a failure (none)
//   MILLRACE_FAKE_CUDA_PEERS     0: no device can reach another's memory (1)
//   MILLRACE_FAKE_CUDA_COOPERATION
//                                0: no device makes cooperative launches (1)
//   MILLRACE_FAKE_CUDA_BROKEN_PEERS
//                                "always" or "access": peer copies report success and move zeros, or do so once either
//                                device may reach the other's memory (never)
#pragma once

#include <cstdint>
#include <string>

#include "cuda/driver_types.h"

namespace millrace::fake_cuda {

/// Applies to every device.
inline constexpr int kMultiprocessors = 4;

struct Options {
  int devices;
  int version;
  uint64_t memory_bytes;
  int delay_us;
  std::string missing;
  bool has_peers;
  bool can_cooperate;
};

const Options& GetOptions();

/// Whether MILLRACE_FAKE_CUDA_MISSING names the function.
bool IsMissing(const char* function);

/// Counts a call; returns the code with which it must fail, or CUDA_SUCCESS.
cuda::CUresult Injected(const char* function);

/// Replaces MILLRACE_FAKE_CUDA_FAIL and restarts the counts.
void SetFailures(const char* specification);

/// Whether peer copies corrupt data, between devices with access in some direction, or without.
bool ArePeersBroken(bool has_access);
void SetBrokenPeers(const std::string& which);

void Log(const char* function, const std::string& detail);

/// The driver's own log: a call of this thread failed.
void Say(const char* function, cuda::CUresult code);
std::string Said();

}  // namespace millrace::fake_cuda
