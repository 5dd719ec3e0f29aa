#include "cuda/nvrtc_library.h"

#include <dlfcn.h>

#include <optional>

#include "cuda/library_search.h"

namespace millrace::cuda {

namespace {

/// NVRTC opens a second library by its file name, which the loader searches only in its own folders. A library that is
/// already loaded is also found by name, so this loads it from NVRTC's folder.
void OpenBuiltins(const NvrtcInfo& info) {
  const size_t slash = info.path.rfind('/');
  if (slash == std::string::npos) return;
  const std::string name = "libnvrtc-builtins.so." + std::to_string(info.major) + "." + std::to_string(info.minor);
  dlopen((info.path.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::optional<NvrtcLibrary> TryOpenNvrtc(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  NvrtcLibrary opened;
  bool is_complete = true;
#define MR_NVRTC(name, params)                                                          \
  opened.functions.name = reinterpret_cast<NvrtcCode(*) params>(dlsym(library, #name)); \
  is_complete = is_complete && opened.functions.name != nullptr;
#include "cuda/nvrtc_functions.def"
#undef MR_NVRTC
  const NvrtcTable& nvrtc = opened.functions;
  NvrtcInfo& info = opened.info;
  int count = 0;
  if (!is_complete || nvrtc.nvrtcVersion(&info.major, &info.minor) != NVRTC_SUCCESS ||
      nvrtc.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) {
    dlclose(library);
    return std::nullopt;
  }
  // A driver cannot load code from a compiler of the next major release.
  if (!SuitsDriver(info.major)) {
    dlclose(library);
    return std::nullopt;
  }
  info.architectures.resize(static_cast<size_t>(count));
  if (nvrtc.nvrtcGetSupportedArchs(info.architectures.data()) != NVRTC_SUCCESS) info.architectures.clear();
  info.path = PathOf(reinterpret_cast<void*>(nvrtc.nvrtcVersion), path);
  OpenBuiltins(info);
  return opened;
}

}  // namespace

const NvrtcLibrary* OpenNvrtc() {
  static const std::optional<NvrtcLibrary> library =
      FirstThatOpens(LibraryCandidates("MILLRACE_NVRTC", "nvrtc"), TryOpenNvrtc);
  return library ? &*library : nullptr;
}

}  // namespace millrace::cuda
