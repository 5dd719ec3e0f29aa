#include "cuda/nvrtc_library.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "cuda/driver.h"

namespace millrace::cuda {

namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Library paths of toolkits and Python packages, as patterns for glob(). Listing these folders takes less than a
/// millisecond; starting a Python interpreter would take fifty.
std::vector<std::string> Patterns() {
  std::vector<std::string> patterns;
  const auto add_toolkit = [&](const std::string& root) {
    if (root.empty()) return;
    patterns.push_back(root + "/lib64/libnvrtc.so*");
    patterns.push_back(root + "/targets/x86_64-linux/lib/libnvrtc.so*");
  };
  const auto add_python = [&](const std::string& root, const char* packages) {
    // The Python package is called cu13 for CUDA 13 and cuda_nvrtc for CUDA 12.
    if (!root.empty()) patterns.push_back(root + "/lib/python3*/" + packages + "/nvidia/*/lib/libnvrtc.so*");
  };
  add_toolkit(Environment("CUDA_HOME"));
  add_toolkit(Environment("CUDA_PATH"));
  add_python(Environment("VIRTUAL_ENV"), "site-packages");
  if (const std::string conda = Environment("CONDA_PREFIX"); !conda.empty()) {
    patterns.push_back(conda + "/lib/libnvrtc.so*");
    add_python(conda, "site-packages");
  }
  add_toolkit("/usr/local/cuda");
  add_toolkit("/usr/local/cuda-*");
  if (const std::string home = Environment("HOME"); !home.empty()) add_python(home + "/.local", "site-packages");
  add_python("/usr/local", "site-packages");
  add_python("/usr/local", "dist-packages");
  add_python("/usr", "dist-packages");
  add_python("/opt/*", "site-packages");
  add_python("/opt/*/.venv", "site-packages");
  return patterns;
}

std::vector<std::string> NvrtcCandidates() {
  if (std::string chosen = Environment("MILLRACE_NVRTC"); !chosen.empty()) return {std::move(chosen)};
  std::vector<std::string> paths = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const std::string& pattern : Patterns()) {
    glob_t found = {};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      // In reverse order: of several versions in one folder, the newest is tried first.
      for (size_t i = found.gl_pathc; i > 0; --i) paths.emplace_back(found.gl_pathv[i - 1]);
    }
    globfree(&found);
  }
  return paths;
}

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
  if (const DriverReport driver = LoadDriver(); driver.is_loaded && info.major > driver.version / 1000) {
    dlclose(library);
    return std::nullopt;
  }
  info.architectures.resize(static_cast<size_t>(count));
  if (nvrtc.nvrtcGetSupportedArchs(info.architectures.data()) != NVRTC_SUCCESS) info.architectures.clear();
  Dl_info where = {};
  const bool is_known = dladdr(reinterpret_cast<void*>(nvrtc.nvrtcVersion), &where) != 0 && where.dli_fname != nullptr;
  info.path = is_known ? where.dli_fname : path;
  OpenBuiltins(info);
  return opened;
}

}  // namespace

const NvrtcLibrary* OpenNvrtc() {
  static const std::optional<NvrtcLibrary> library = []() -> std::optional<NvrtcLibrary> {
    for (const std::string& path : NvrtcCandidates()) {
      if (std::optional<NvrtcLibrary> opened = TryOpenNvrtc(path)) return opened;
    }
    return std::nullopt;
  }();
  return library ? &*library : nullptr;
}

}  // namespace millrace::cuda
