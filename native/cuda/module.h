// Loaded images and their functions.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// A loaded image. Unloaded when its last kernel or variable is gone; after a loss it is not unloaded.
class Module final : public hal::Module, public std::enable_shared_from_this<Module> {
 public:
  /// `image` is a cubin, a fat binary, or PTX, which the driver then compiles. Thread: any. May take long.
  static Result<std::shared_ptr<Module>> Load(std::shared_ptr<Context> context, std::span<const std::byte> image);
  Module(std::shared_ptr<Context> context, CUmodule handle) : context_(std::move(context)), handle_(handle) {}
  ~Module() override;

  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  [[nodiscard]] Result<std::shared_ptr<hal::Kernel>> FindKernel(const std::string& entry, bool is_bounded,
                                                                bool is_launching) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> FindVariable(const std::string& name) override;

  [[nodiscard]] CUmodule handle() const { return handle_; }
  [[nodiscard]] Context& context() const { return *context_; }

 private:
  const std::shared_ptr<Context> context_;
  const CUmodule handle_;
};

/// A function of a module, which it keeps loaded.
class Kernel final : public hal::Kernel {
 public:
  /// Thread: any.
  static Result<std::shared_ptr<Kernel>> Find(std::shared_ptr<Module> module, const std::string& entry);
  /// Called before the first launch of a kernel that launches kernels: raises the limit of pending launches, CUDA's
  /// default of 2048, to the CPU device's.
  static void RaisePendingLaunches(Context& context);
  /// Several functions of one image, in the order of their names.
  static Result<std::vector<std::shared_ptr<Kernel>>> LoadAll(std::shared_ptr<Context> context,
                                                              std::span<const std::byte> image,
                                                              std::span<const std::string> entries);

  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  [[nodiscard]] CUfunction function() const { return function_; }
  [[nodiscard]] const hal::KernelLimits& limits() const override { return limits_; }
  [[nodiscard]] Result<uint64_t> MaxCooperativeBlocks(uint32_t block_threads, uint32_t shared_bytes) override;
  [[nodiscard]] Context* context() const { return &module_->context(); }

  /// Dynamic shared memory above the default limit must be enabled. Thread: any.
  Status AllowShared(uint32_t bytes);

 private:
  explicit Kernel(std::shared_ptr<Module> module) : module_(std::move(module)) {}
  Status Prepare(const std::string& entry);
  Result<uint32_t> Attribute(CUfunction_attribute attribute) const;
  Result<int> DeviceAttribute(CUdevice_attribute attribute) const;
  /// Resident blocks on one multiprocessor.
  Result<uint32_t> BlocksAtOnce(uint32_t threads, uint32_t shared_bytes) const;

  const std::shared_ptr<Module> module_;
  CUfunction function_ = nullptr;
  hal::KernelLimits limits_;  // Set during loading.
  uint32_t multiprocessors_ = 0;
  std::mutex raising_;
  std::atomic<uint32_t> allowed_shared_{0};  // Bytes. Raised with raising_ held.
};

}  // namespace millrace::cuda
