// A CPU that pretends to be a GPU: a pool of threads, a budget of memory, streams.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cpu/memory.h"
#include "cpu/pool.h"
#include "cpu/stream.h"
#include "hal/hal.h"

namespace millrace::cpu {

class CpuDevice final : public hal::Device {
 public:
  /// Starts `info.multiprocessors` threads.
  [[nodiscard]] static Result<std::unique_ptr<hal::Device>> Open(hal::DeviceInfo info);
  CpuDevice(hal::DeviceInfo info, std::shared_ptr<Pool> pool);
  ~CpuDevice() override { Close(); }

  [[nodiscard]] const hal::DeviceInfo& info() const override { return info_; }
  /// Threads of this device report to the sink themselves.
  [[nodiscard]] bool NeedsPolling() const override { return false; }
  Status BindChannelThread() override { return {}; }
  [[nodiscard]] Result<std::unique_ptr<hal::Stream>> CreateStream(const hal::StreamRequest& request) override;
  [[nodiscard]] Result<std::shared_ptr<hal::Kernel>> LoadKernel(const hal::KernelRequest& request) override;
  /// Any host memory will do for a CPU: there is nothing to lock.
  Status RegisterHost(std::span<std::byte>) override { return {}; }
  Status UnregisterHost(std::span<std::byte>) override { return {}; }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateFaultSlots(uint32_t count) override;
  [[nodiscard]] uint64_t FreeBytes() const override { return heap_->FreeBytes(); }
  /// Blocks for as long as the longest kernel does. A caller that cannot wait so long leaks the device instead.
  void Close() override;

 private:
  const hal::DeviceInfo info_;
  const std::shared_ptr<Pool> pool_;
  const std::shared_ptr<Heap> heap_;
  std::vector<std::weak_ptr<StreamCore>> streams_;  // Thread: channel. For Close.
};

}  // namespace millrace::cpu
