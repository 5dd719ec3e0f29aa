// Compiled kernels: shared objects from the kernel builder.
//
// For each kernel an image exports two symbols, and a third if its source has launch bounds:
//   void mr_entry_<entry>(const MrLaunch*, unsigned long long first_block, unsigned long long end_block);
//   const unsigned mr_params_<entry>[] = {count, size of parameter 0, size of parameter 1, ...};
//   const unsigned mr_max_threads_<entry> = threads of a block;
// For the variables of a module it exports one table, which ends with a null name:
//   const MrVariable mr_variables[];
// An image whose threads wait for each other in loops has the symbol `mr_spins`, and one that was compiled to find
// races of shared memory has `mr_finds_races`. An entry runs whole blocks, numbered linearly with x fastest, so a grid
// can be split between any two blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpu/guard_variables.h"
#include "cpu/image_variables.h"
#include "cpu/shim/launch_abi.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// A loaded shared object. It stays loaded while a kernel handle or a launch holds it. The loader loads a file only
/// once per process, so a file with variables is copied first: each load then has variables of its own.
class Image {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Image>> Load(const std::string& path);
  Image(void* library, const std::string& path, std::shared_ptr<ImageVariables> variables);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[nodiscard]] void* Find(const std::string& symbol) const;
  /// The address at which an image that finds races is loaded; 0 for any other image.
  [[nodiscard]] uintptr_t race_base() const { return race_base_; }
  /// Null if it was compiled without the shim.
  [[nodiscard]] const ImageVariables* variables() const { return variables_.get(); }
  /// Its variables that are not of the source.
  [[nodiscard]] const std::vector<ThreadRange>& guards() const { return guards_; }

 private:
  [[nodiscard]] static Result<std::shared_ptr<Image>> LoadCopy(const std::string& path);
  /// Loads `file`, which has the content of `path`.
  [[nodiscard]] static Result<std::shared_ptr<Image>> Open(const std::string& file, const std::string& path);

  void* const library_;
  std::shared_ptr<ImageVariables> variables_;
  uintptr_t race_base_ = 0;
  std::vector<ThreadRange> guards_;
};

class CpuModule final : public hal::Module {
 public:
  [[nodiscard]] static Result<std::shared_ptr<hal::Module>> Load(std::span<const std::byte> image,
                                                                 const hal::DeviceInfo& device);
  CpuModule(std::shared_ptr<Image> image, const hal::KernelLimits& limits)
      : image_(std::move(image)), device_limits_(limits) {}

  /// The kernel's limits are the device's unless its source has launch bounds.
  [[nodiscard]] Result<std::shared_ptr<hal::Kernel>> FindKernel(const std::string& entry, bool is_bounded,
                                                                bool is_launching) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> FindVariable(const std::string& name) override;

 private:
  const std::shared_ptr<Image> image_;
  const hal::KernelLimits device_limits_;
};

/// A library's call in the place of an image's code.
struct LibraryCall {
  /// Null for an image's code. The entry gets it, and the launch's parameters, as its two parameters.
  std::shared_ptr<void> plan;
  /// The blocks of every launch, whatever those of the kernel would be.
  std::array<uint32_t, 3> grid{};
  /// A block takes longer than to wake a thread.
  bool is_long = false;
};

class CpuKernel final : public hal::Kernel {
 public:
  CpuKernel(std::shared_ptr<Image> image, MrEntry function, std::vector<uint32_t> param_bytes, bool is_bounded,
            bool is_launching, const hal::KernelLimits& limits, LibraryCall call = {})
      : is_spinning_(image->Find("mr_spins") != nullptr),
        image_(std::move(image)),
        function_(function),
        param_bytes_(std::move(param_bytes)),
        wide_count_(std::count_if(param_bytes_.begin(), param_bytes_.end(), IsWide)),
        is_bounded_(is_bounded),
        is_launching_(is_launching),
        limits_(limits),
        call_(std::move(call)) {}

  [[nodiscard]] const hal::KernelLimits& limits() const override { return limits_; }
  [[nodiscard]] Result<uint64_t> MaxCooperativeBlocks(uint32_t, uint32_t) override {
    return uint64_t{limits_.max_cooperative_blocks};
  }

  [[nodiscard]] const std::shared_ptr<Image>& image() const { return image_; }
  [[nodiscard]] MrEntry function() const { return function_; }
  [[nodiscard]] const std::vector<uint32_t>& param_bytes() const { return param_bytes_; }
  /// Whether a launch with these parameters gives those that the image takes: the user declares them, but the image has
  /// the actual ones.
  [[nodiscard]] Status CheckParams(size_t count, std::span<const hal::WideParam> wide) const;
  [[nodiscard]] const LibraryCall& call() const { return call_; }
  /// Its blocks may wait in loops for each other or for another launch, so each needs a thread, as long as there are
  /// enough.
  [[nodiscard]] bool NeedsResident(const hal::Dim3& grid) const;
  [[nodiscard]] bool is_bounded() const { return is_bounded_; }
  /// Whether it may launch kernels. The last two parameters of its launches are then a fault slot and a fault word,
  /// even if its source has none.
  [[nodiscard]] bool is_launching() const { return is_launching_; }

 private:
  static bool IsWide(uint32_t bytes) { return bytes > sizeof(uint64_t); }

  const bool is_spinning_;
  const std::shared_ptr<Image> image_;
  const MrEntry function_;
  const std::vector<uint32_t> param_bytes_;
  const ptrdiff_t wide_count_;  // Of them, those larger than a word.
  const bool is_bounded_;
  const bool is_launching_;
  const hal::KernelLimits limits_;
  const LibraryCall call_;
};

}  // namespace millrace::cpu
