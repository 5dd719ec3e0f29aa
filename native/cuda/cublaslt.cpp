#include "cuda/cublaslt.h"

#include <dlfcn.h>

#include <optional>
#include <string>

#include "cuda/library_search.h"

namespace millrace::cuda {

namespace {

/// From 120804: 12.8.4.
std::string VersionText(size_t version) {
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
         std::to_string(version % 100);
}

std::optional<CublasLtLibrary> TryOpenCublasLt(const std::string& path) {
  // Lazily, because it has thousands of functions of which few are called.
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  CublasLtLibrary opened;
  bool is_complete = true;
#define MR_CUBLASLT(name, params)                                                        \
  opened.functions.name = reinterpret_cast<CublasCode(*) params>(dlsym(library, #name)); \
  is_complete = is_complete && opened.functions.name != nullptr;
#include "cuda/cublaslt_functions.def"
#undef MR_CUBLASLT
  auto* const version = reinterpret_cast<size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
  if (!is_complete || version == nullptr || !SuitsDriver(static_cast<int>(version() / 10000))) {
    dlclose(library);
    return std::nullopt;
  }
  opened.info = {
      .name = "cuBLASLt", .version = VersionText(version()), .path = PathOf(reinterpret_cast<void*>(version), path)};
  return opened;
}

}  // namespace

const CublasLtLibrary* OpenCublasLt() {
  static const std::optional<CublasLtLibrary> library =
      FirstThatOpens(LibraryCandidates("MILLRACE_CUBLASLT", "cublasLt"), TryOpenCublasLt);
  return library ? &*library : nullptr;
}

Status CublasLtFailure(CublasCode code) {
  switch (code) {
    case CUBLAS_STATUS_SUCCESS:
      return {};
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return {StatusCode::kLaunchFailed, "cuBLASLt answered CUBLAS_STATUS_NOT_INITIALIZED"};
    case CUBLAS_STATUS_ALLOC_FAILED:
      return {StatusCode::kLaunchFailed, "cuBLASLt answered CUBLAS_STATUS_ALLOC_FAILED"};
    case CUBLAS_STATUS_INVALID_VALUE:
      return {StatusCode::kLaunchFailed, "cuBLASLt answered CUBLAS_STATUS_INVALID_VALUE"};
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return {StatusCode::kUnsupported, "cuBLASLt answered CUBLAS_STATUS_ARCH_MISMATCH"};
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return {StatusCode::kLaunchFailed, "cuBLASLt answered CUBLAS_STATUS_EXECUTION_FAILED"};
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return {StatusCode::kLaunchFailed, "cuBLASLt answered CUBLAS_STATUS_INTERNAL_ERROR"};
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return {StatusCode::kUnsupported, "cuBLASLt answered CUBLAS_STATUS_NOT_SUPPORTED"};
  }
  return {StatusCode::kLaunchFailed, "cuBLASLt answered an unknown status"};
}

}  // namespace millrace::cuda
