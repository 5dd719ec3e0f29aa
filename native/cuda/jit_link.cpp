#include "cuda/jit_link.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/nvrtc.h"

namespace millrace::cuda {
namespace {

std::vector<std::string> Candidates() {
  if (const char* chosen = std::getenv("MILLRACE_NVJITLINK"); chosen != nullptr && *chosen != '\0') return {chosen};
  std::vector<std::string> paths;
  // From the compiler's release, as the linker must not be older: next to the compiler or next to its Python package.
  if (const NvrtcInfo* nvrtc = NvrtcFind(); nvrtc != nullptr) {
    const std::string folder = nvrtc->path.substr(0, nvrtc->path.rfind('/') + 1);
    const std::string name = "libnvJitLink.so." + std::to_string(nvrtc->major);
    for (const std::string& pattern : {folder + name, folder + "../../nvjitlink/lib/" + name}) {
      glob_t found = {};
      if (glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.emplace_back(found.gl_pathv[0]);
      globfree(&found);
    }
    paths.push_back(name);
  }
  return paths;
}

std::optional<JitLinkTable> TryOpen(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  JitLinkTable table;
  bool is_complete = true;
#define MR_JIT_LINK(name, params)                                              \
  table.name = reinterpret_cast<JitLinkCode(*) params>(dlsym(library, #name)); \
  is_complete = is_complete && table.name != nullptr;
#include "cuda/jit_link_functions.def"
#undef MR_JIT_LINK
  if (is_complete) return table;
  dlclose(library);
  return std::nullopt;
}

}  // namespace

const JitLinkTable* OpenJitLink() {
  static const std::optional<JitLinkTable> table = []() -> std::optional<JitLinkTable> {
    for (const std::string& path : Candidates()) {
      if (std::optional<JitLinkTable> opened = TryOpen(path)) return opened;
    }
    return std::nullopt;
  }();
  return table ? &*table : nullptr;
}

}  // namespace millrace::cuda
