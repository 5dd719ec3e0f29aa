// Kernels, and the shape and the parameters of their launches, as the runtime gives them to a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace::hal {

/// A kernel, by its image and its name in it.
struct KernelRequest {
  std::span<const std::byte> image;
  std::string entry;
  bool is_bounded = false;
  /// Kernels of the image launch kernels. The CPU device then checks those launches, and reports the ones that it
  /// refuses.
  bool is_launching = false;
};

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

/// A parameter that is no scalar and no pointer: a struct or a vector, of any size.
struct WideParam {
  uint32_t index = 0;
  uint32_t bytes = 0;
};

/// Pointers to the parameters whose values are these words, as cuLaunchKernel takes them.
[[nodiscard]] inline std::vector<void*> ParamPointers(std::span<const uint64_t> words,
                                                      std::span<const WideParam> wide) {
  std::vector<void*> pointers;
  auto next = wide.begin();
  for (size_t word = 0; word < words.size();) {
    const bool is_wide = next != wide.end() && next->index == pointers.size();
    pointers.push_back(const_cast<uint64_t*>(&words[word]));
    word += is_wide ? (next++->bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) : 1;
  }
  return pointers;
}

}  // namespace millrace::hal
