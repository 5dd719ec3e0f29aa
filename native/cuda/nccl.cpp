#include "cuda/nccl.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cuda/library_search.h"

namespace millrace::cuda {

namespace {

constexpr const char* kVariable = "MILLRACE_NCCL";
constexpr const char* kStem = "nccl";
constexpr int kNewest = 2;

/// From 22703: 2.27.3.
std::string VersionText(int version) {
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
         std::to_string(version % 100);
}

constexpr int kSettings = 2;
constexpr const char* kSettingNames[kSettings] = {
    // Multicast of the links' switches: its setup was seen to fail where the system does not permit it.
    "NCCL_NVLS_ENABLE",
    // Otherwise the first call of each algorithm would connect the ranks, which blocks the thread of a channel.
    "NCCL_RUNTIME_CONNECT",
};

struct Settings {
  std::mutex mutex;
  int users = 0;
  bool are_own[kSettings] = {};
};

/// Never destroyed: threads may outlive static objects.
Settings& AllSettings() {
  static auto& settings = *new Settings;
  return settings;
}

/// The release of CUDA that the library is built for, by its version's text ("2.27.3+cuda12.9"); 0 if it has none. No
/// function tells it.
int BuiltForCuda(const void* function) {
  struct Search {
    uintptr_t base = 0;
    int major = 0;
  };
  Dl_info where = {};
  if (dladdr(function, &where) == 0) return 0;
  Search search{.base = reinterpret_cast<uintptr_t>(where.dli_fbase)};
  const auto look = [](dl_phdr_info* info, size_t, void* data) {
    auto& [base, major] = *static_cast<Search*>(data);
    if (info->dlpi_addr != base) return 0;
    for (int n = 0; n < info->dlpi_phnum && major == 0; ++n) {
      const auto& part = info->dlpi_phdr[n];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_R) == 0 || (part.p_flags & PF_W) != 0) continue;
      // Constants are in front of the code of the devices, which is much larger.
      constexpr size_t kMostSearched = 32 << 20;
      const std::string_view bytes(reinterpret_cast<const char*>(base + part.p_vaddr),
                                   std::min<size_t>(part.p_filesz, kMostSearched));
      constexpr std::string_view kMark = "+cuda";
      for (size_t at = bytes.find(kMark); at != bytes.npos && major == 0; at = bytes.find(kMark, at + 1))
        std::from_chars(bytes.data() + at + kMark.size(), bytes.data() + bytes.size(), major);
    }
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return search.major;
}

std::optional<NcclLibrary> TryOpenNccl(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  NcclLibrary opened;
  bool is_complete = true;
#define MR_NCCL(name, params)                                                          \
  opened.functions.name = reinterpret_cast<NcclCode(*) params>(dlsym(library, #name)); \
  is_complete = is_complete && opened.functions.name != nullptr;
#include "cuda/nccl_functions.def"
#undef MR_NCCL
  opened.functions.ncclGetLastError = reinterpret_cast<const char* (*)(NcclComm)>(dlsym(library, "ncclGetLastError"));
  auto* const get_version = reinterpret_cast<NcclCode (*)(int*)>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (!is_complete || get_version == nullptr || get_version(&version) != ncclSuccess ||
      !SuitsDriver(BuiltForCuda(reinterpret_cast<void*>(get_version)))) {
    dlclose(library);
    return std::nullopt;
  }
  opened.info = {
      .name = "NCCL", .version = VersionText(version), .path = PathOf(reinterpret_cast<void*>(get_version), path)};
  return opened;
}

}  // namespace

const NcclLibrary* OpenNccl() {
  static const std::optional<NcclLibrary> library =
      FirstThatOpens(LibraryCandidates(kVariable, kStem, kNewest), TryOpenNccl);
  return library ? &*library : nullptr;
}

NcclSettings::NcclSettings() {
  Settings& settings = AllSettings();
  const std::lock_guard lock(settings.mutex);
  if (settings.users++ > 0) return;
  for (int n = 0; n < kSettings; ++n) {
    settings.are_own[n] = std::getenv(kSettingNames[n]) == nullptr;
    if (settings.are_own[n]) setenv(kSettingNames[n], "0", 0);
  }
}

NcclSettings::~NcclSettings() {
  Settings& settings = AllSettings();
  const std::lock_guard lock(settings.mutex);
  if (--settings.users > 0) return;
  for (int n = 0; n < kSettings; ++n)
    if (settings.are_own[n]) unsetenv(kSettingNames[n]);
}

Status NcclFailure(NcclCode code) {
  switch (code) {
    case ncclSuccess:
      return {};
    case ncclUnhandledCudaError:
      return {StatusCode::kLaunchFailed, "NCCL answered ncclUnhandledCudaError"};
    case ncclSystemError:
      return {StatusCode::kLaunchFailed, "NCCL answered ncclSystemError"};
    case ncclInternalError:
      return {StatusCode::kLaunchFailed, "NCCL answered ncclInternalError"};
    case ncclInvalidArgument:
      return {StatusCode::kLaunchFailed, "NCCL answered ncclInvalidArgument"};
    case ncclInvalidUsage:
      return {StatusCode::kLaunchFailed, "NCCL answered ncclInvalidUsage"};
    case ncclRemoteError:
      return {StatusCode::kLaunchFailed, "NCCL answered ncclRemoteError"};
    case ncclInProgress:
      return {StatusCode::kLaunchFailed, "NCCL answered ncclInProgress"};
  }
  return {StatusCode::kLaunchFailed, "NCCL answered an unknown code"};
}

}  // namespace millrace::cuda
