// The CUDA devices of this process that were destroyed and still run something.
//
// A destroyed device ends when its kernels do. While one of them runs on, calls of the driver may wait for it, so the
// GPU is not opened again (docs/ends.md). The table is static because a device outlives the thread that opened it.
#pragma once

#include <cstdint>

namespace millrace::cuda {

class EndingDevices {
 public:
  /// Has no effect for a device that is in the table. Thread: channel.
  static void Add(uint32_t ordinal, const void* device);
  /// Thread: any.
  static void Remove(const void* device);
  /// Whether `destroy` gave up waiting for a device with this ordinal. Thread: control.
  [[nodiscard]] static bool HasHung(uint32_t ordinal);
};

}  // namespace millrace::cuda
