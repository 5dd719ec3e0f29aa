#include "cuda/library_search.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "cuda/driver.h"

namespace millrace::cuda {

namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Folders of toolkits and Python packages, as patterns for glob(). Listing them takes less than a millisecond;
/// starting a Python interpreter would take fifty.
std::vector<std::string> Patterns(const std::string& file) {
  std::vector<std::string> patterns;
  const auto add_toolkit = [&](const std::string& root) {
    if (root.empty()) return;
    patterns.push_back(root + "/lib64/" + file);
    patterns.push_back(root + "/targets/x86_64-linux/lib/" + file);
  };
  const auto add_python = [&](const std::string& root, const char* packages) {
    // The folder of the Python package is cu13 for CUDA 13, and one for each library for CUDA 12.
    if (!root.empty()) patterns.push_back(root + "/lib/python3*/" + packages + "/nvidia/*/lib/" + file);
  };
  add_toolkit(Environment("CUDA_HOME"));
  add_toolkit(Environment("CUDA_PATH"));
  add_python(Environment("VIRTUAL_ENV"), "site-packages");
  if (const std::string conda = Environment("CONDA_PREFIX"); !conda.empty()) {
    patterns.push_back(conda + "/lib/" + file);
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

}  // namespace

std::vector<std::string> LibraryCandidates(const char* variable, const std::string& stem, int newest) {
  if (std::string chosen = Environment(variable); !chosen.empty()) return {std::move(chosen)};
  const std::string file = "lib" + stem + ".so";
  std::vector<std::string> paths = {file + '.' + std::to_string(newest), file + '.' + std::to_string(newest - 1), file};
  for (const std::string& pattern : Patterns(file + "*")) {
    glob_t found = {};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      // In reverse order: of several versions in one folder, the newest is tried first.
      for (size_t i = found.gl_pathc; i > 0; --i) paths.emplace_back(found.gl_pathv[i - 1]);
    }
    globfree(&found);
  }
  return paths;
}

bool LoaderFinds(const std::string& path) {
  const auto exists = [](const std::string& file) { return access(file.c_str(), R_OK) == 0; };
  if (path.find('/') != std::string::npos) return exists(path);
  for (std::stringstream folders(Environment("LD_LIBRARY_PATH")); folders.good();) {
    std::string folder;
    std::getline(folders, folder, ':');
    if (!folder.empty() && exists(folder + '/' + path)) return true;
  }
  // The loader's cache has the paths of the system's folders as texts that end with 0.
  std::ifstream cache("/etc/ld.so.cache", std::ios::binary);
  const std::string paths{std::istreambuf_iterator<char>(cache), {}};
  return paths.find('/' + path + '\0') != std::string::npos;
}

bool SuitsDriver(int major) {
  const DriverReport driver = LoadDriver();
  return !driver.is_loaded || major <= driver.version / 1000;
}

std::string PathOf(const void* function, const std::string& otherwise) {
  Dl_info where = {};
  return dladdr(function, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : otherwise;
}

}  // namespace millrace::cuda
