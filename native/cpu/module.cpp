#include "cpu/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cpu/block_threads.h"
#include "cpu/writable_data.h"
#include "hal/system_message.h"

namespace millrace::cpu {

namespace {

constexpr const char* kCopying = "copying the shared object of a kernel";
constexpr const char* kLoading = "loading the shared object of a kernel";
constexpr const char* kFindingEntry = "finding a kernel's entry in its shared object";

/// The loader's message for the latest failure on this thread.
std::string LoaderError() {
  const char* said = dlerror();
  return said != nullptr ? said : "it gave no reason";
}

/// A copy next to the file, which the loader does not know yet. Its name marks it as unfinished, so that the cache
/// removes it if the process ends first.
Result<std::string> CopyOf(const std::string& path) {
  static std::atomic<uint64_t> copies{0};
  std::string copy = path + '.' + std::to_string(getpid()) + '-' + std::to_string(copies.fetch_add(1)) + ".new";
  std::error_code error;
  if (std::filesystem::copy_file(path, copy, error)) return copy;
  // Removes a copy that is incomplete because the disk is full.
  unlink(copy.c_str());
  return SystemMessage::Fail(StatusCode::kUnavailable, kCopying, copy + ": " + error.message());
}

/// A variable of a loaded image, which it keeps loaded.
class Variable final : public hal::Memory {
 public:
  Variable(std::shared_ptr<Image> image, const MrVariable& found) : image_(std::move(image)), found_(found) {}
  [[nodiscard]] std::byte* address() const override { return static_cast<std::byte*>(found_.address); }
  [[nodiscard]] uint64_t bytes() const override { return found_.bytes; }

 private:
  const std::shared_ptr<Image> image_;
  const MrVariable found_;
};

}  // namespace

Result<std::shared_ptr<Image>> Image::Load(const std::string& path) {
  if (HasOwnData(path)) return LoadCopy(path);
  Result<std::shared_ptr<Image>> loaded = Open(path, path);
  // Another copy of this library, in the same process, has other places for variables.
  return !loaded.ok() && loaded.status().code() == StatusCode::kState ? LoadCopy(path) : std::move(loaded);
}

Result<std::shared_ptr<Image>> Image::LoadCopy(const std::string& path) {
  Result<std::string> copied = CopyOf(path);
  MR_TRY(copied.status());
  Result<std::shared_ptr<Image>> loaded = Open(copied.value(), path);
  // The mapping remains valid, and the loader cannot mistake another file for this one.
  unlink(copied.value().c_str());
  return loaded;
}

Result<std::shared_ptr<Image>> Image::Open(const std::string& file, const std::string& path) {
  // RTLD_NOW: a missing symbol must fail the build, not end the process at the first launch. RTLD_LOCAL: two images may
  // export the same entry.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return SystemMessage::Fail(StatusCode::kUnavailable, kLoading, LoaderError());
  Result<std::shared_ptr<ImageVariables>> variables = ImageVariables::Of(library);
  if (variables.ok()) return std::make_shared<Image>(library, path, std::move(variables).value());
  dlclose(library);
  return variables.status();
}

Image::Image(void* library, const std::string& path, std::shared_ptr<ImageVariables> variables)
    : library_(library), variables_(std::move(variables)) {
  Dl_info info{};
  const void* found = Find("mr_finds_races");
  if (found == nullptr || dladdr(found, &info) == 0) return;
  race_base_ = reinterpret_cast<uintptr_t>(info.dli_fbase);
  guards_ = GuardVariables(path);
}

Image::~Image() {
  variables_.reset();
  dlclose(library_);
}

void* Image::Find(const std::string& symbol) const {
  return dlsym(library_, symbol.c_str());
}

Result<std::shared_ptr<hal::Module>> CpuModule::Load(std::span<const std::byte> image, const hal::DeviceInfo& device) {
  Result<std::shared_ptr<Image>> loaded =
      Image::Load(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  MR_TRY(loaded.status());
  return std::shared_ptr<hal::Module>(std::make_shared<CpuModule>(
      std::move(loaded).value(), hal::KernelLimits{.max_threads_per_block = device.max_threads_per_block,
                                                   .max_dynamic_shared_bytes = device.max_shared_bytes,
                                                   .max_cooperative_blocks = kMaxCooperativeBlocks}));
}

Result<std::shared_ptr<hal::Kernel>> CpuModule::FindKernel(const std::string& entry, bool is_bounded,
                                                           bool is_launching) {
  auto function = reinterpret_cast<MrEntry>(image_->Find("mr_entry_" + entry));
  if (function == nullptr) return SystemMessage::Fail(StatusCode::kInternal, kFindingEntry, LoaderError());
  const auto* table = static_cast<const unsigned*>(image_->Find("mr_params_" + entry));
  if (table == nullptr) return Status(StatusCode::kInternal, "finding a kernel's parameter sizes in its shared object");

  std::vector<uint32_t> param_bytes(table + 1, table + 1 + table[0]);
  for (uint32_t bytes : param_bytes) {
    if (bytes == 0 || bytes > protocol::kMaxParameterBytes) {
      return Status(StatusCode::kUnsupported, "passing a kernel parameter of more than 32764 bytes");
    }
  }
  hal::KernelLimits limits = device_limits_;
  if (const void* bound = image_->Find("mr_max_threads_" + entry); bound != nullptr) {
    limits.max_threads_per_block = std::min(limits.max_threads_per_block, *static_cast<const unsigned*>(bound));
  }
  return std::shared_ptr<hal::Kernel>(
      std::make_shared<CpuKernel>(image_, function, std::move(param_bytes), is_bounded, is_launching, limits));
}

bool CpuKernel::NeedsResident(const hal::Dim3& grid) const {
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  return is_spinning_ && !is_launching_ && blocks > 0 && blocks <= kMaxCooperativeBlocks;
}

Status CpuKernel::CheckParams(size_t count, std::span<const hal::WideParam> wide) const {
  // A library reads some of the parameters.
  const bool is_call = call_.plan != nullptr && param_bytes_.size() <= count;
  if (count != param_bytes_.size() && !is_call && !(is_launching_ && param_bytes_.size() + 2 == count)) {
    return {StatusCode::kLaunchFailed, "launching a kernel whose source takes a different number of parameters"};
  }
  ptrdiff_t found = 0;
  for (const auto& [index, bytes] : wide) {
    if (index >= param_bytes_.size() || param_bytes_[index] != bytes) {
      return {StatusCode::kLaunchFailed, "launching a kernel whose source takes a parameter of another size"};
    }
    if (IsWide(bytes)) ++found;
  }
  if (found == wide_count_) return {};
  return {StatusCode::kLaunchFailed, "launching a kernel whose source takes a parameter of another size"};
}

Result<std::unique_ptr<hal::Memory>> CpuModule::FindVariable(const std::string& name) {
  const auto* found = static_cast<const MrVariable*>(image_->Find("mr_variables"));
  while (found != nullptr && found->name != nullptr && name != found->name) ++found;
  if (found == nullptr || found->name == nullptr) return Status(StatusCode::kArgument, "finding a variable");
  if (found->is_const != 0) return Status(StatusCode::kUnsupported, "reaching a variable that is const");
  return std::unique_ptr<hal::Memory>(std::make_unique<Variable>(image_, *found));
}

}  // namespace millrace::cpu
