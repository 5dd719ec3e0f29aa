#include "cuda/device_link.h"

#include <array>
#include <cstring>

#include "cuda/context.h"
#include "cuda/context_scope.h"
#include "cuda/jit_link.h"

namespace millrace {
namespace {

using namespace cuda;  // NOLINT: its types are what this is about

constexpr char kName[] = "kernel.cubin";
constexpr size_t kLogBytes = 8192;

DeviceLinkResult WithJitLink(const JitLinkTable& linker, const DeviceLinkRequest& request) {
  DeviceLinkResult result;
  const std::string option = "-arch=" + request.architecture;
  const char* options[] = {option.c_str()};
  JitLinkHandle handle = nullptr;
  if (linker.nvJitLinkCreate(&handle, 1, options) != NVJITLINK_SUCCESS) return result;
  size_t bytes = 0;
  JitLinkCode code =
      linker.nvJitLinkAddData(handle, NVJITLINK_INPUT_CUBIN, request.cubin.data(), request.cubin.size(), kName);
  if (code == NVJITLINK_SUCCESS) {
    code = linker.nvJitLinkAddFile(handle, NVJITLINK_INPUT_LIBRARY, request.library.c_str());
  }
  if (code == NVJITLINK_SUCCESS) code = linker.nvJitLinkComplete(handle);
  if (code == NVJITLINK_SUCCESS) code = linker.nvJitLinkGetLinkedCubinSize(handle, &bytes);
  if (code == NVJITLINK_SUCCESS) {
    result.image.resize(bytes);
    code = linker.nvJitLinkGetLinkedCubin(handle, result.image.data());
  }
  result.ok = code == NVJITLINK_SUCCESS;
  size_t log_bytes = 0;
  if (!result.ok && linker.nvJitLinkGetErrorLogSize(handle, &log_bytes) == NVJITLINK_SUCCESS && log_bytes > 1) {
    result.log.resize(log_bytes);
    if (linker.nvJitLinkGetErrorLog(handle, result.log.data()) != NVJITLINK_SUCCESS) result.log.clear();
    while (!result.log.empty() && result.log.back() == '\0') result.log.pop_back();
  }
  linker.nvJitLinkDestroy(&handle);
  return result;
}

Result<DeviceLinkResult> WithDriver(const DeviceLinkRequest& request) {
  auto retained = Context::Retain(request.ordinal);
  MR_TRY(retained.status());
  Context& context = *retained.value();
  const ContextScope scope(context.handle());
  MR_TRY(context.Check(scope.code(), "making the context current"));

  std::array<char, kLogBytes> log = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUlinkState state = nullptr;
  MR_TRY(context.Check(Cuda().cuLinkCreate(2, options, values, &state), "linking with the device runtime"));
  // The driver does not write to the cubin, although the parameter is not const.
  CUresult code = Cuda().cuLinkAddData(state, CU_JIT_INPUT_CUBIN, const_cast<std::byte*>(request.cubin.data()),
                                       request.cubin.size(), kName, 0, nullptr, nullptr);
  if (code == CUDA_SUCCESS) {
    code = Cuda().cuLinkAddFile(state, CU_JIT_INPUT_LIBRARY, request.library.c_str(), 0, nullptr, nullptr);
  }
  void* image = nullptr;
  size_t bytes = 0;
  if (code == CUDA_SUCCESS) code = Cuda().cuLinkComplete(state, &image, &bytes);
  DeviceLinkResult result;
  result.ok = code == CUDA_SUCCESS;
  if (result.ok) {
    // The link state owns the image's memory.
    const auto* from = static_cast<const std::byte*>(image);
    result.image.assign(from, from + bytes);
  }
  result.log.assign(log.data(), strnlen(log.data(), log.size()));
  Cuda().cuLinkDestroy(state);
  const Status status = context.Check(code, "linking with the device runtime");
  if (!result.ok && result.log.empty()) return status;
  return result;
}

}  // namespace

Result<DeviceLinkResult> LinkDeviceRuntime(const DeviceLinkRequest& request) {
  if (const JitLinkTable* linker = OpenJitLink(); linker != nullptr) {
    DeviceLinkResult result = WithJitLink(*linker, request);
    if (result.ok) return result;
  }
  return WithDriver(request);
}

}  // namespace millrace
