#include "cuda/module.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"

namespace millrace::cuda {

namespace {

constexpr uint32_t kWarpThreads = 32;  // Of every device there is.

/// Cubins are ELF files and fat binaries have a number of their own; anything else is PTX, which is text.
bool IsBinary(std::span<const std::byte> image) {
  constexpr unsigned char kElf[] = {0x7f, 'E', 'L', 'F'};
  constexpr unsigned char kFatBinary[] = {0x50, 0xed, 0x55, 0xba};
  return image.size() >= 4 &&
         (std::memcmp(image.data(), kElf, 4) == 0 || std::memcmp(image.data(), kFatBinary, 4) == 0);
}

}  // namespace

Module::~Module() {
  if (context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  std::ignore = context_->Check(Cuda().cuModuleUnload(handle_), "unloading a module");
}

Result<std::shared_ptr<Kernel>> Kernel::Load(std::shared_ptr<Context> context, std::span<const std::byte> image,
                                             const std::string& entry) {
  auto kernels = LoadAll(std::move(context), image, {&entry, 1});
  MR_TRY(kernels.status());
  return std::move(kernels.value()[0]);
}

Result<std::vector<std::shared_ptr<Kernel>>> Kernel::LoadAll(std::shared_ptr<Context> context,
                                                             std::span<const std::byte> image,
                                                             std::span<const std::string> entries) {
  MR_TRY(context->Alive());
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));

  CUmodule handle = nullptr;
  if (IsBinary(image)) {
    MR_TRY(context->Check(Cuda().cuModuleLoadData(&handle, image.data()), "loading a module"));
  } else {
    // The driver finds the end of PTX by its terminating zero, which a file's bytes do not have.
    const std::string text(reinterpret_cast<const char*>(image.data()), image.size());
    MR_TRY(context->Check(Cuda().cuModuleLoadData(&handle, text.c_str()), "loading a module from PTX"));
  }
  const auto module = std::make_shared<Module>(std::move(context), handle);
  std::vector<std::shared_ptr<Kernel>> kernels;
  for (const std::string& entry : entries) {
    kernels.push_back(std::shared_ptr<Kernel>(new Kernel(module)));
    MR_TRY(kernels.back()->Find(entry));
  }
  return kernels;
}

Status Kernel::Find(const std::string& entry) {
  Context& context = module_->context();
  const CUresult found = Cuda().cuModuleGetFunction(&function_, module_->handle(), entry.c_str());
  if (found == CUDA_ERROR_NOT_FOUND) {
    return {StatusCode::kCompile, "finding the kernel's function in its module", static_cast<int32_t>(found)};
  }
  MR_TRY(context.Check(found, "finding the kernel's function in its module"));

  Result<uint32_t> threads = Attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  MR_TRY(threads.status());
  Result<uint32_t> own_shared = Attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  MR_TRY(own_shared.status());
  // What is left of the default limit after the function's own, static shared memory.
  Result<uint32_t> allowed = Attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  MR_TRY(allowed.status());
  allowed_shared_ = allowed.value();

  Result<int> most_shared = DeviceAttribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  MR_TRY(most_shared.status());
  Result<int> multiprocessors = DeviceAttribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  MR_TRY(multiprocessors.status());
  multiprocessors_ = static_cast<uint32_t>(multiprocessors.value());
  Result<int> can_cooperate = DeviceAttribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  MR_TRY(can_cooperate.status());

  const auto most = static_cast<uint32_t>(most_shared.value());
  limits_.max_threads_per_block = threads.value();
  limits_.max_dynamic_shared_bytes = most - std::min(most, own_shared.value());
  for (uint32_t size = kWarpThreads; size <= threads.value(); size += kWarpThreads) {
    Result<uint32_t> blocks = BlocksAtOnce(size, 0);
    MR_TRY(blocks.status());
    limits_.blocks_at_once.push_back(blocks.value());
    if (can_cooperate.value() == 0) continue;
    limits_.max_blocks_together = std::max(limits_.max_blocks_together, blocks.value() * multiprocessors_);
  }
  return {};
}

Result<uint64_t> Kernel::BlocksTogether(uint32_t block_threads, uint32_t shared_bytes) {
  const ContextScope scope(module_->context().handle());
  MR_TRY(module_->context().Check(scope.code(), "making the context current"));
  // None has room before.
  MR_TRY(AllowShared(shared_bytes));
  Result<uint32_t> blocks = BlocksAtOnce(block_threads, shared_bytes);
  MR_TRY(blocks.status());
  return uint64_t{blocks.value()} * multiprocessors_;
}

Result<uint32_t> Kernel::Attribute(CUfunction_attribute attribute) const {
  int value = 0;
  MR_TRY(
      module_->context().Check(Cuda().cuFuncGetAttribute(&value, attribute, function_), "reading a kernel's limits"));
  return static_cast<uint32_t>(value);
}

Result<int> Kernel::DeviceAttribute(CUdevice_attribute attribute) const {
  int value = 0;
  Context& context = module_->context();
  MR_TRY(
      context.Check(Cuda().cuDeviceGetAttribute(&value, attribute, context.device()), "reading the device's limits"));
  return value;
}

Result<uint32_t> Kernel::BlocksAtOnce(uint32_t threads, uint32_t shared_bytes) const {
  int blocks = 0;
  MR_TRY(module_->context().Check(
      Cuda().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, static_cast<int>(threads), shared_bytes),
      "asking how many blocks of a kernel run at once"));
  return static_cast<uint32_t>(blocks);
}

Status Kernel::AllowShared(uint32_t bytes) {
  if (bytes <= allowed_shared_) return {};
  MR_TRY(module_->context().Check(
      Cuda().cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
      "raising a kernel's shared memory limit"));
  allowed_shared_ = bytes;
  return {};
}

}  // namespace millrace::cuda
