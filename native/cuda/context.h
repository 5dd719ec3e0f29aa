// A device's primary context, and the memory of its loss.
//
// Everything that lives in the context (device, streams, memory, kernels, page-locked ranges) holds it by shared
// pointer. The process keeps it too, until it ends: opened, closed and opened again, a device was seen to hang for
// minutes inside cuDevicePrimaryCtxRelease (docs/decisions/0005). Once the device is lost nothing of it is given back:
// every call would fail, and the driver's state is not to be trusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/driver.h"
#include "cuda/submissions.h"
#include "hal/status.h"

namespace millrace::cuda {

/// Devices beyond it are not shown. Sized so that the loss of each can be remembered without a table that grows.
inline constexpr uint32_t kMaxDevices = 64;

class Context {
 public:
  /// The primary context of a device. Thread: any. Takes about a tenth of a second the first time.
  static Result<std::shared_ptr<Context>> Retain(uint32_t ordinal);

  /// Whether the process made contexts of several devices, so that an address may be another one's. Thread: any.
  [[nodiscard]] static bool HasSeveral();

  /// The context whose device has this memory; null for host memory. With any context current. Thread: any.
  static Result<std::shared_ptr<Context>> OwnerOf(const std::byte* address);

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] CUcontext handle() const { return handle_; }
  [[nodiscard]] CUdevice device() const { return device_; }
  [[nodiscard]] uint32_t ordinal() const { return ordinal_; }

  /// The Status of a driver call, remembering a loss. Every result of a call in this context passes here. Thread: any.
  Status Check(CUresult code, const char* note);

  /// As Check, for exports to other processes: kUnsupported where there are none (a missing function), kArgument for
  /// what cannot be exported. Thread: any.
  Status CheckExport(CUresult code, const char* note);

  /// As Check, for opening what another process exported: kUnsupported also for a handle that this very process made,
  /// kArgument for one that names nothing. Thread: any.
  Status CheckOpening(CUresult code, const char* note);

  /// Asks the driver whether the context still works, without waiting for it. Thread: any.
  Status Ask();

  /// Gives the device up for a code that would not mean a loss by itself. Thread: any.
  Status Lose(CUresult code, const char* note);

  /// Held shared by whoever submits work that may last, and exclusively by who gives back what the driver gives back
  /// only after waiting for the device, which has nothing to do then. That one only tries, so nobody waits for him but
  /// while an idle device is called. Thread: any.
  [[nodiscard]] Submissions& submissions() { return submissions_; }

  /// Ok, or kDeviceLost. Thread: any.
  [[nodiscard]] Status Alive() const;
  [[nodiscard]] bool is_lost() const { return LostCode(ordinal_).load(std::memory_order_acquire) != 0; }

  /// The code a device was lost with in this process, or 0. A faulted context cannot be made again, so this outlives
  /// it.
  static std::atomic<int32_t>& LostCode(uint32_t ordinal);

 private:
  Context(uint32_t ordinal, CUdevice device, CUcontext handle) : ordinal_(ordinal), device_(device), handle_(handle) {}

  const uint32_t ordinal_;
  const CUdevice device_;
  const CUcontext handle_;
  Submissions submissions_;
};

}  // namespace millrace::cuda
