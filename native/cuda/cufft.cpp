#include "cuda/cufft.h"

#include <dlfcn.h>

#include <algorithm>
#include <optional>
#include <string>

#include "cuda/library_search.h"

namespace millrace::cuda {

namespace {

constexpr const char* kCufftVariable = "MILLRACE_CUFFT";
constexpr const char* kCufftStem = "cufft";
/// cuFFT 12 came with CUDA 13, and cuFFT 11 with CUDA 12.
constexpr int kNewestCufft = 12;
constexpr int CudaMajorOf(int major) {
  return major + 1;
}

/// From 11303: 11.3.3.
std::string CufftVersionText(int version) {
  return std::to_string(version / 1000) + '.' + std::to_string(version / 100 % 10) + '.' +
         std::to_string(version % 100);
}

std::optional<CufftLibrary> TryOpenCufft(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  CufftLibrary opened;
  bool is_complete = true;
#define MR_CUFFT(name, params)                                                          \
  opened.functions.name = reinterpret_cast<CufftCode(*) params>(dlsym(library, #name)); \
  is_complete = is_complete && opened.functions.name != nullptr;
#include "cuda/cufft_functions.def"
#undef MR_CUFFT
  auto* const get_version = reinterpret_cast<CufftCode (*)(int*)>(dlsym(library, "cufftGetVersion"));
  int version = 0;
  if (!is_complete || get_version == nullptr || get_version(&version) != CUFFT_SUCCESS ||
      !SuitsDriver(CudaMajorOf(version / 1000))) {
    dlclose(library);
    return std::nullopt;
  }
  opened.info = {.name = "cuFFT",
                 .version = CufftVersionText(version),
                 .path = PathOf(reinterpret_cast<void*>(get_version), path)};
  return opened;
}

/// By the number in its name: libcufft.so.12.0.0. Without one it may suit.
bool MaySuit(const std::string& path) {
  constexpr const char* kNumber = ".so.";
  const size_t at = path.rfind(kNumber);
  const int major =
      at == std::string::npos ? 0 : std::atoi(path.c_str() + at + std::char_traits<char>::length(kNumber));
  return SuitsDriver(CudaMajorOf(major));
}

}  // namespace

const CufftLibrary* OpenCufft() {
  static const std::optional<CufftLibrary> library =
      FirstThatOpens(LibraryCandidates(kCufftVariable, kCufftStem, kNewestCufft), TryOpenCufft);
  return library ? &*library : nullptr;
}

bool HasCufft() {
  static const bool has = [] {
    const std::vector<std::string> paths = LibraryCandidates(kCufftVariable, kCufftStem, kNewestCufft);
    return std::any_of(paths.begin(), paths.end(),
                       [](const std::string& path) { return MaySuit(path) && LoaderFinds(path); });
  }();
  return has;
}

Status CufftFailure(CufftCode code) {
  switch (code) {
    case CUFFT_SUCCESS:
      return {};
    case CUFFT_INVALID_PLAN:
      return {StatusCode::kLaunchFailed, "cuFFT answered CUFFT_INVALID_PLAN"};
    case CUFFT_ALLOC_FAILED:
      return {StatusCode::kLaunchFailed, "cuFFT answered CUFFT_ALLOC_FAILED"};
    case CUFFT_INVALID_VALUE:
      return {StatusCode::kLaunchFailed, "cuFFT answered CUFFT_INVALID_VALUE"};
    case CUFFT_INTERNAL_ERROR:
      return {StatusCode::kLaunchFailed, "cuFFT answered CUFFT_INTERNAL_ERROR"};
    case CUFFT_EXEC_FAILED:
      return {StatusCode::kLaunchFailed, "cuFFT answered CUFFT_EXEC_FAILED"};
    case CUFFT_SETUP_FAILED:
      return {StatusCode::kLaunchFailed, "cuFFT answered CUFFT_SETUP_FAILED"};
    case CUFFT_INVALID_SIZE:
      return {StatusCode::kUnsupported, "cuFFT answered CUFFT_INVALID_SIZE"};
    case CUFFT_NOT_SUPPORTED:
      return {StatusCode::kUnsupported, "cuFFT answered CUFFT_NOT_SUPPORTED"};
  }
  return {StatusCode::kLaunchFailed, "cuFFT answered an unknown status"};
}

}  // namespace millrace::cuda
