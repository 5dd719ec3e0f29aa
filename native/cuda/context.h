// A device's primary context, and whether the device is lost.
//
// Everything in the context (device, streams, memory, kernels, page-locked ranges) holds it by shared pointer. The
// process keeps it too until it exits, because cuDevicePrimaryCtxRelease was seen to hang for minutes when a device was
// reopened (docs/decisions/0005). Nothing of a lost device is released, because every call would fail, and the
// driver's state cannot be trusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/driver.h"
#include "cuda/submissions.h"
#include "hal/status.h"

namespace millrace::cuda {

/// Further devices are not listed. A fixed number, so that a static table can record the loss of each one.
inline constexpr uint32_t kMaxDevices = 64;

class Context {
 public:
  /// The primary context of a device. Thread: any. The first call takes about 0.1 s.
  static Result<std::shared_ptr<Context>> Retain(uint32_t ordinal);

  /// Whether the process has contexts of several devices, so that an address may be another one's. Thread: any.
  [[nodiscard]] static bool HasSeveral();

  /// The context whose device owns this memory; null for host memory. With any context current. Thread: any.
  static Result<std::shared_ptr<Context>> OwnerOf(const std::byte* address);

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] CUcontext handle() const { return handle_; }
  [[nodiscard]] CUdevice device() const { return device_; }
  [[nodiscard]] uint32_t ordinal() const { return ordinal_; }

  /// The Status of a driver call; records a loss. Every result of a call in this context passes here. Thread: any.
  Status Check(CUresult code, const char* note);

  /// Like Check, for exports to other processes: kUnsupported if the driver function is missing, kArgument for an
  /// object that cannot be exported. Thread: any.
  Status CheckExport(CUresult code, const char* note);

  /// Like Check, for opening another process's export: kUnsupported also for a handle from this process, kArgument for
  /// an invalid handle. Thread: any.
  Status CheckOpening(CUresult code, const char* note);

  /// Asks the driver without blocking whether the context still works. Thread: any.
  Status Ask();

  /// Marks the device as lost, for a code that does not mean a loss by itself. Thread: any.
  Status Lose(CUresult code, const char* note);

  /// Held shared while work is submitted, and exclusively by releases that make the driver wait for the device, so that
  /// the device is idle then. Releases use try_lock, so submission waits only for a release on an idle device. Thread:
  /// any.
  [[nodiscard]] Submissions& submissions() { return submissions_; }

  /// Ok, or kDeviceLost. Thread: any.
  [[nodiscard]] Status Alive() const;
  [[nodiscard]] bool is_lost() const { return LostCode(ordinal_).load(std::memory_order_acquire) != 0; }

  /// The code with which this process lost a device, or 0. It outlives the context, because a faulted context cannot be
  /// recreated.
  static std::atomic<int32_t>& LostCode(uint32_t ordinal);

 private:
  Context(uint32_t ordinal, CUdevice device, CUcontext handle) : ordinal_(ordinal), device_(device), handle_(handle) {}

  const uint32_t ordinal_;
  const CUdevice device_;
  const CUcontext handle_;
  Submissions submissions_;
};

}  // namespace millrace::cuda
