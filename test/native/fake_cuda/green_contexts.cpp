// The fake driver's green contexts. Their streams and nodes run as all others do, since the fake driver has no
// multiprocessors; the log tells the share of a node.
// It checks what a GPU asks for: groups of two multiprocessors, each in one place of a description.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "entry.h"
#include "options.h"

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

/// What a CUgreenCtx and a CUdevResourceDesc stand for.
struct CUgreenCtx_st : GreenContext {};
struct CUdevResourceDesc_st {
  int device;
  unsigned multiprocessors;
};

namespace {

constexpr unsigned kUnit = 2;

/// What the driver keeps of a resource, in its internal bytes.
struct Place {
  int device;
  unsigned first;
};

CUdevResource Resource(const Place& place, unsigned multiprocessors) {
  CUdevResource made{};
  made.type = multiprocessors == 0 ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(made.internal, &place, sizeof(place));
  made.sm = {multiprocessors, kUnit, kUnit};
  return made;
}

Place PlaceOf(const CUdevResource& resource) {
  Place place{};
  std::memcpy(&place, resource.internal, sizeof(place));
  return place;
}

}  // namespace

extern "C" {

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  MR_ENTER("cuDeviceGetDevResource");
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *resource = Resource({device, 0}, kMultiprocessors);
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* groups, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned int, unsigned int least) {
  MR_ENTER("cuDevSmResourceSplitByCount");
  const Place place = PlaceOf(*input);
  const unsigned size = std::max(kUnit, (least + kUnit - 1) / kUnit * kUnit);
  const unsigned most = input->sm.smCount / size;
  *groups = result == nullptr ? most : std::min(most, *groups);
  for (unsigned n = 0; result != nullptr && n < *groups; ++n)
    result[n] = Resource({place.device, place.first + n * size}, size);
  const unsigned used = *groups * size;
  if (remaining != nullptr) *remaining = Resource({place.device, place.first + used}, input->sm.smCount - used);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned int count) {
  MR_ENTER("cuDevResourceGenerateDesc", "resources=" + std::to_string(count));
  if (count == 0) return CUDA_ERROR_INVALID_VALUE;
  auto* made = new CUdevResourceDesc_st{PlaceOf(resources[0]).device, 0};
  std::set<unsigned> firsts;
  for (unsigned n = 0; n < count; ++n) {
    const bool is_new = firsts.insert(PlaceOf(resources[n]).first).second;
    if (!is_new || resources[n].type != CU_DEV_RESOURCE_TYPE_SM || PlaceOf(resources[n]).device != made->device)
      return CUDA_ERROR_INVALID_VALUE;
    made->multiprocessors += resources[n].sm.smCount;
  }
  *description = made;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device, unsigned int flags) {
  MR_ENTER("cuGreenCtxCreate", "multiprocessors=" + std::to_string(description->multiprocessors));
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM || description->device != device) return CUDA_ERROR_INVALID_VALUE;
  Device* const whole = GetWorld().devices[static_cast<size_t>(device)].get();
  *context = new CUgreenCtx_st{{whole, description->multiprocessors}};
  return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  MR_ENTER("cuCtxFromGreenCtx");
  *context = reinterpret_cast<CUcontext>(reinterpret_cast<uintptr_t>(static_cast<GreenContext*>(green)) + 1);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned int flags, int priority) {
  const std::string share = " multiprocessors=" + std::to_string(context->multiprocessors);
  MR_ENTER("cuGreenCtxStreamCreate", "priority=" + std::to_string(priority) + share);
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  World& world = GetWorld();
  const std::lock_guard lock(world.mutex);
  Device& device = *context->device;
  auto made = std::make_shared<Stream>(device, world.next_number++, std::clamp(priority, -5, 0));
  made->Start();
  *stream = reinterpret_cast<CUstream>(made.get());
  device.streams.insert(std::move(made));
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda
