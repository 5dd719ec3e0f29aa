#include "cuda/context.h"

#include <array>
#include <mutex>

#include "cuda/context_scope.h"
#include "cuda/driver.h"
#include "cuda/driver_errors.h"

namespace millrace::cuda {

namespace {

std::atomic<int> contexts_made{0};

}  // namespace

bool Context::HasSeveral() {
  return contexts_made.load(std::memory_order_acquire) > 1;
}

Result<std::shared_ptr<Context>> Context::OwnerOf(const std::byte* address) {
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  const CUresult code = Cuda().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
  // The driver does not know pageable host memory.
  if (code == CUDA_ERROR_INVALID_VALUE) return std::shared_ptr<Context>();
  MR_TRY(FromDriver(code, "finding the device of an address"));
  if (type != CU_MEMORYTYPE_DEVICE) return std::shared_ptr<Context>();
  int ordinal = 0;
  MR_TRY(FromDriver(Cuda().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at),
                    "finding the device of an address"));
  return Retain(static_cast<uint32_t>(ordinal));
}

Result<std::shared_ptr<Context>> Context::Retain(uint32_t ordinal) {
  if (ordinal >= kMaxDevices || !LoadDriver().is_loaded) return Status(StatusCode::kUnavailable, "finding the device");
  // Never destroyed, because native threads may outlive static objects.
  static auto* mutex = new std::mutex;
  static auto* kept = new std::array<std::shared_ptr<Context>, kMaxDevices>;
  const std::lock_guard lock(*mutex);
  std::shared_ptr<Context>& context = (*kept)[ordinal];
  if (context != nullptr) {
    MR_TRY(context->Alive());
    return context;
  }
  CUdevice device = 0;
  MR_TRY(FromDriver(Cuda().cuDeviceGet(&device, static_cast<int>(ordinal)), "finding the device"));
  CUcontext handle = nullptr;
  const CUresult code = Cuda().cuDevicePrimaryCtxRetain(&handle, device);
  if (IsSticky(code)) LostCode(ordinal).store(static_cast<int32_t>(code), std::memory_order_release);
  MR_TRY(FromDriver(code, "making the device's context"));
  context.reset(new Context(ordinal, device, handle));
  contexts_made.fetch_add(1, std::memory_order_release);
  return context;
}

Status Context::Check(CUresult code, const char* note) {
  if (code == CUDA_SUCCESS) return {};
  return IsSticky(code) ? Lose(code, note) : FromDriver(code, note);
}

Status Context::CheckExport(CUresult code, const char* note) {
  const auto driver_code = static_cast<int32_t>(code);
  switch (code) {
    case CUDA_ERROR_NOT_FOUND:
      return {StatusCode::kUnsupported, note, driver_code};
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
      return {StatusCode::kArgument, note, driver_code};
    default:
      return Check(code, note);
  }
}

Status Context::CheckOpening(CUresult code, const char* note) {
  if (code == CUDA_SUCCESS || IsSticky(code)) return Check(code, note);
  const auto driver_code = static_cast<int32_t>(code);
  switch (code) {
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_NOT_SUPPORTED:
      return {StatusCode::kUnsupported, note, driver_code};
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {StatusCode::kOutOfMemory, note, driver_code};
    default:
      // The code for a bad handle depends on the driver and on how far it parsed the handle.
      return {StatusCode::kArgument, note, driver_code};
  }
}

Status Context::Ask() {
  MR_TRY(Alive());
  const ContextScope scope(handle_);
  MR_TRY(Check(scope.code(), "making the context current"));
  size_t free = 0;
  size_t total = 0;
  return Check(Cuda().cuMemGetInfo(&free, &total), "checking the context for errors");
}

Status Context::Lose(CUresult code, const char* note) {
  // Only the first code tells the cause; later ones follow from it.
  int32_t none = 0;
  LostCode(ordinal_).compare_exchange_strong(none, static_cast<int32_t>(code), std::memory_order_acq_rel);
  return {StatusCode::kDeviceLost, note, static_cast<int32_t>(code)};
}

Status Context::Alive() const {
  const int32_t code = LostCode(ordinal_).load(std::memory_order_acquire);
  return code == 0 ? Status() : Status(StatusCode::kDeviceLost, "the device was lost earlier", code);
}

std::atomic<int32_t>& Context::LostCode(uint32_t ordinal) {
  static std::atomic<int32_t> codes[kMaxDevices] = {};
  MR_CHECK(ordinal < kMaxDevices);
  return codes[ordinal];
}

}  // namespace millrace::cuda
