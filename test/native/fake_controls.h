// Controls of the fake driver at run time. They do not work on a real driver: cases that need them check OnFake().
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "hal/status.h"

namespace millrace::testing {

inline bool OnFake() {
  const char* driver = std::getenv("MILLRACE_CUDA_DRIVER");
  return driver != nullptr && std::strcmp(driver, MILLRACE_FAKE_CUDA) == 0;
}

/// A function of the loaded driver, by name.
template <typename Function>
Function FromDriverLibrary(const char* name) {
  void* library = dlopen(OnFake() ? MILLRACE_FAKE_CUDA : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  MR_CHECK(library != nullptr);
  void* function = dlsym(library, name);
  MR_CHECK(function != nullptr);
  return reinterpret_cast<Function>(function);
}

/// "cuLaunchKernel:3:719": what test/native/fake_cuda/options.h says of MILLRACE_FAKE_CUDA_FAIL.
inline void FailCalls(const char* specification) {
  FromDriverLibrary<void (*)(const char*)>("fake_cuda_fail")(specification);
}

/// "always", "access" or "": what options.h says of MILLRACE_FAKE_CUDA_BROKEN_PEERS.
inline void BreakPeers(const char* which) {
  FromDriverLibrary<void (*)(const char*)>("fake_cuda_break_peers")(which);
}

/// Whether the context of `device` may access memory of `peer` outside its pool.
inline bool Reaches(int device, int peer) {
  return FromDriverLibrary<bool (*)(int, int)>("fake_cuda_reaches")(device, peer);
}

/// Number of calls that freed the device's own memory or closed another process's.
inline int Frees(int device) {
  return FromDriverLibrary<int (*)(int)>("fake_cuda_frees")(device);
}
/// Number of those calls that waited for work.
inline int WaitingFrees(int device) {
  return FromDriverLibrary<int (*)(int)>("fake_cuda_waiting_frees")(device);
}
/// Number of queries whether a stream of the device has work.
inline int Questions(int device) {
  return FromDriverLibrary<int (*)(int)>("fake_cuda_questions")(device);
}

}  // namespace millrace::testing
