#include "cuda/module.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"

namespace millrace::cuda {

namespace {

constexpr uint32_t kWarpThreads = 32;  // On every CUDA device.
constexpr size_t kPendingLaunches = 32768;

/// Cubins are ELF files, and fat binaries have a magic number; anything else is PTX.
bool IsBinary(std::span<const std::byte> image) {
  constexpr unsigned char kElf[] = {0x7f, 'E', 'L', 'F'};
  constexpr unsigned char kFatBinary[] = {0x50, 0xed, 0x55, 0xba};
  return image.size() >= 4 &&
         (std::memcmp(image.data(), kElf, 4) == 0 || std::memcmp(image.data(), kFatBinary, 4) == 0);
}

/// The symbol of a variable: its name at global scope, or its mangled name (C++ ABI) in a namespace.
std::string SymbolOf(const std::string& name) {
  constexpr std::string_view kBetween = "::";
  if (name.find(kBetween) == std::string::npos) return name;
  std::string symbol = "_ZN";
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find(kBetween, begin), name.size());
    symbol += std::to_string(end - begin) + name.substr(begin, end - begin);
    begin = end + kBetween.size();
  }
  return symbol + 'E';
}

/// A variable of a loaded image, which it keeps loaded.
class Variable final : public hal::Memory {
 public:
  Variable(std::shared_ptr<Module> module, CUdeviceptr address, uint64_t bytes)
      : module_(std::move(module)), address_(address), bytes_(bytes) {}
  [[nodiscard]] std::byte* address() const override { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  const std::shared_ptr<Module> module_;
  const CUdeviceptr address_;
  const uint64_t bytes_;
};

}  // namespace

Module::~Module() {
  if (context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  std::ignore = context_->Check(Cuda().cuModuleUnload(handle_), "unloading a module");
}

void Kernel::RaisePendingLaunches(Context& context) {
  const ContextScope scope(context.handle());
  size_t count = 0;
  constexpr CUlimit kLimit = CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
  if (scope.code() != CUDA_SUCCESS || Cuda().cuCtxGetLimit(&count, kLimit) != CUDA_SUCCESS) return;
  // The driver may refuse; launches beyond its limit then fail, as without this call.
  if (count < kPendingLaunches) std::ignore = Cuda().cuCtxSetLimit(kLimit, kPendingLaunches);
}

Result<std::shared_ptr<Module>> Module::Load(std::shared_ptr<Context> context, std::span<const std::byte> image) {
  MR_TRY(context->Alive());
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));
  CUmodule handle = nullptr;
  if (IsBinary(image)) {
    MR_TRY(context->Check(Cuda().cuModuleLoadData(&handle, image.data()), "loading a module"));
  } else {
    // The driver requires a terminating zero after PTX.
    const std::string text(reinterpret_cast<const char*>(image.data()), image.size());
    MR_TRY(context->Check(Cuda().cuModuleLoadData(&handle, text.c_str()), "loading a module from PTX"));
  }
  return std::make_shared<Module>(std::move(context), handle);
}

Result<std::shared_ptr<hal::Kernel>> Module::FindKernel(const std::string& entry, bool, bool is_launching) {
  if (is_launching) Kernel::RaisePendingLaunches(*context_);
  Result<std::shared_ptr<Kernel>> kernel = Kernel::Find(shared_from_this(), entry);
  MR_TRY(kernel.status());
  return std::shared_ptr<hal::Kernel>(std::move(kernel).value());
}

Result<std::unique_ptr<hal::Memory>> Module::FindVariable(const std::string& name) {
  MR_TRY(context_->Alive());
  const ContextScope scope(context_->handle());
  MR_TRY(context_->Check(scope.code(), "making the context current"));
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult found = Cuda().cuModuleGetGlobal(&address, &bytes, handle_, SymbolOf(name).c_str());
  if (found == CUDA_ERROR_NOT_FOUND) {
    return Status(StatusCode::kArgument, "finding a variable", static_cast<int32_t>(found));
  }
  MR_TRY(context_->Check(found, "finding a variable"));
  return std::unique_ptr<hal::Memory>(std::make_unique<Variable>(shared_from_this(), address, bytes));
}

Result<std::shared_ptr<Kernel>> Kernel::Find(std::shared_ptr<Module> module, const std::string& entry) {
  Context& context = module->context();
  MR_TRY(context.Alive());
  const ContextScope scope(context.handle());
  MR_TRY(context.Check(scope.code(), "making the context current"));
  std::shared_ptr<Kernel> kernel(new Kernel(std::move(module)));
  MR_TRY(kernel->Prepare(entry));
  return kernel;
}

Result<std::vector<std::shared_ptr<Kernel>>> Kernel::LoadAll(std::shared_ptr<Context> context,
                                                             std::span<const std::byte> image,
                                                             std::span<const std::string> entries) {
  Result<std::shared_ptr<Module>> module = Module::Load(std::move(context), image);
  MR_TRY(module.status());
  std::vector<std::shared_ptr<Kernel>> kernels;
  for (const std::string& entry : entries) {
    Result<std::shared_ptr<Kernel>> kernel = Find(module.value(), entry);
    MR_TRY(kernel.status());
    kernels.push_back(std::move(kernel).value());
  }
  return kernels;
}

Status Kernel::Prepare(const std::string& entry) {
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
  // The default limit minus the function's static shared memory.
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
  // The last warp may be partial.
  for (uint32_t size = kWarpThreads; size < threads.value() + kWarpThreads; size += kWarpThreads) {
    Result<uint32_t> blocks = BlocksAtOnce(std::min(size, threads.value()), 0);
    MR_TRY(blocks.status());
    limits_.blocks_at_once.push_back(blocks.value());
    if (can_cooperate.value() == 0) continue;
    limits_.max_cooperative_blocks = std::max(limits_.max_cooperative_blocks, blocks.value() * multiprocessors_);
  }
  return {};
}

Result<uint64_t> Kernel::MaxCooperativeBlocks(uint32_t block_threads, uint32_t shared_bytes) {
  const ContextScope scope(module_->context().handle());
  MR_TRY(module_->context().Check(scope.code(), "making the context current"));
  // The occupancy query returns 0 unless the limit is raised first.
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
      "querying how many blocks of a kernel fit on the device"));
  return static_cast<uint32_t>(blocks);
}

Status Kernel::AllowShared(uint32_t bytes) {
  if (bytes <= allowed_shared_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(raising_);
  if (bytes <= allowed_shared_.load(std::memory_order_relaxed)) return {};
  MR_TRY(module_->context().Check(
      Cuda().cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
      "raising a kernel's shared memory limit"));
  allowed_shared_.store(bytes, std::memory_order_release);
  return {};
}

}  // namespace millrace::cuda
