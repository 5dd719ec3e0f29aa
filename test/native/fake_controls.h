// What tests ask of the fake driver while it runs. Nothing here works on a real one: cases that need it say so by
// OnFake().
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

/// A function of the driver in use, by its name.
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

/// Whether the context of `device` may reach memory of `peer` that is not of its pool.
inline bool Reaches(int device, int peer) {
  return FromDriverLibrary<bool (*)(int, int)>("fake_cuda_reaches")(device, peer);
}

/// How often the driver was told to free memory of the device's own or to close another process's.
inline int Frees(int device) {
  return FromDriverLibrary<int (*)(int)>("fake_cuda_frees")(device);
}
/// Of these, how often it had to wait for work.
inline int WaitingFrees(int device) {
  return FromDriverLibrary<int (*)(int)>("fake_cuda_waiting_frees")(device);
}
/// How often a stream of the device was asked whether it has work.
inline int Questions(int device) {
  return FromDriverLibrary<int (*)(int)>("fake_cuda_questions")(device);
}

}  // namespace millrace::testing
