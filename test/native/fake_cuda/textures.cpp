// The fake driver's arrays, texture objects and surface objects. Objects are those of the CPU device, whose kernels the
// fake driver runs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "cpu/shim/launch_abi.h"
#include "entry.h"
#include "options.h"

namespace millrace::cuda {

struct CUarray_st {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  std::vector<char> bytes;
};

}  // namespace millrace::cuda

namespace millrace::fake_cuda {

namespace {

struct Format {
  cuda::CUarray_format format;
  unsigned char number;  // In MrTexture.
  unsigned char bytes;
};
constexpr Format kFormats[] = {
    {cuda::CU_AD_FORMAT_UNSIGNED_INT8, 0, 1},  {cuda::CU_AD_FORMAT_UNSIGNED_INT16, 1, 2},
    {cuda::CU_AD_FORMAT_UNSIGNED_INT32, 2, 4}, {cuda::CU_AD_FORMAT_SIGNED_INT8, 3, 1},
    {cuda::CU_AD_FORMAT_SIGNED_INT16, 4, 2},   {cuda::CU_AD_FORMAT_SIGNED_INT32, 5, 4},
    {cuda::CU_AD_FORMAT_HALF, 6, 2},           {cuda::CU_AD_FORMAT_FLOAT, 7, 4},
};

const Format* Find(cuda::CUarray_format format) {
  const auto* found = std::ranges::find(kFormats, format, &Format::format);
  return found == std::end(kFormats) ? nullptr : found;
}

/// Everything that was created and not destroyed. Guarded by the world's mutex.
std::set<uint64_t>& Objects() {
  static auto& objects = *new std::set<uint64_t>;
  return objects;
}
std::set<cuda::CUarray>& Arrays() {
  static auto& arrays = *new std::set<cuda::CUarray>;
  return arrays;
}
bool IsArray(cuda::CUarray array) {
  const std::lock_guard lock(GetWorld().mutex);
  return Arrays().contains(array);
}

constexpr uint64_t kPitchAlignment = 32;

/// Null for a resource that a driver refuses.
MrTexture* Make(Device& device, const cuda::CUDA_RESOURCE_DESC& resource) {
  MrTexture made{};
  cuda::CUarray_format format{};
  const auto set = [&](uint64_t address, uint64_t width, uint64_t height, uint64_t depth, unsigned channels) {
    made.data = reinterpret_cast<char*>(address);
    made.width = static_cast<int>(width);
    made.height = static_cast<int>(std::max<uint64_t>(height, 1));
    made.depth = static_cast<int>(std::max<uint64_t>(depth, 1));
    made.channels = static_cast<unsigned char>(channels);
  };
  if (resource.resType == cuda::CU_RESOURCE_TYPE_ARRAY) {
    const cuda::CUarray array = resource.res.array.hArray;
    if (!IsArray(array)) return nullptr;
    const auto& [width, height, depth, of, channels, flags] = array->descriptor;
    format = of;
    set(reinterpret_cast<uintptr_t>(array->bytes.data()), width, height, depth, channels);
  } else if (resource.resType == cuda::CU_RESOURCE_TYPE_LINEAR) {
    const auto& linear = resource.res.linear;
    format = linear.format;
    if (Find(format) == nullptr || !Reaches(device, linear.devPtr, linear.sizeInBytes)) return nullptr;
    set(linear.devPtr, linear.sizeInBytes / Find(format)->bytes / linear.numChannels, 0, 0, linear.numChannels);
  } else {
    const auto& rows = resource.res.pitch2D;
    format = rows.format;
    if (rows.pitchInBytes % kPitchAlignment != 0 || !Reaches(device, rows.devPtr, rows.pitchInBytes)) return nullptr;
    set(rows.devPtr, rows.width, rows.height, 0, rows.numChannels);
    made.pitch = rows.pitchInBytes;
  }
  if (Find(format) == nullptr) return nullptr;
  // A real driver aligns its memory to the 512 bytes that textures need.
  constexpr uint64_t kAlignment = 256;
  if (reinterpret_cast<uintptr_t>(made.data) % kAlignment != 0 && resource.resType != cuda::CU_RESOURCE_TYPE_ARRAY) {
    return nullptr;
  }
  made.format = Find(format)->number;
  made.element_bytes = static_cast<unsigned char>(Find(format)->bytes * made.channels);
  if (made.pitch == 0) made.pitch = static_cast<uint64_t>(made.width) * made.element_bytes;
  made.layer = made.pitch * static_cast<uint64_t>(made.height);
  auto* const object = new MrTexture(made);
  const std::lock_guard lock(GetWorld().mutex);
  Objects().insert(reinterpret_cast<uintptr_t>(object));
  return object;
}

cuda::CUresult Destroy(unsigned long long object) {
  const std::lock_guard lock(GetWorld().mutex);
  if (Objects().erase(object) == 0) return cuda::CUDA_ERROR_INVALID_VALUE;
  auto* const texture = reinterpret_cast<MrTexture*>(object);
  // A kernel that still runs would read zeros.
  *texture = {};
  delete texture;
  return cuda::CUDA_SUCCESS;
}

}  // namespace

cuda::CUresult TextureLimit(cuda::CUdevice_attribute attribute, int* value) {
  using namespace cuda;  // NOLINT: the names of the attributes
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
      *value = 131072;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
      *value = 131072;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
      *value = 16384;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
      *value = 16384;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
      *value = 16384;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH:
      *value = 32768;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:
      *value = 131072;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:
      *value = 16384;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:
      *value = 16384;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:
      *value = 16384;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
      *value = 134217728;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
      *value = 131072;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
      *value = 65000;
      break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
      *value = 2097120;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace millrace::fake_cuda

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  MR_ENTER("cuArray3DCreate", std::to_string(descriptor->Width) + "x" + std::to_string(descriptor->Height) + "x" +
                                  std::to_string(descriptor->Depth));
  MR_CURRENT(device);
  const Format* format = Find(descriptor->Format);
  if (format == nullptr || descriptor->Width == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t bytes = descriptor->Width * std::max<size_t>(descriptor->Height, 1) *
                       std::max<size_t>(descriptor->Depth, 1) * format->bytes * descriptor->NumChannels;
  const std::lock_guard lock(GetWorld().mutex);
  if (bytes > GetOptions().memory_bytes - device->used_bytes - device->pool.InUse()) return CUDA_ERROR_OUT_OF_MEMORY;
  device->used_bytes += bytes;
  *array = new CUarray_st{*descriptor, std::vector<char>(bytes, static_cast<char>(0xcd))};
  Arrays().insert(*array);
  return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array) {
  MR_ENTER("cuArrayDestroy");
  MR_CURRENT(device);
  AwaitWork(*device);
  const std::lock_guard lock(GetWorld().mutex);
  if (Arrays().erase(array) == 0) return CUDA_ERROR_INVALID_HANDLE;
  device->used_bytes -= array->bytes.size();
  delete array;
  return CUDA_SUCCESS;
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  MR_ENTER("cuMemcpy3DAsync", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  const bool is_upload = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY;
  const CUarray array = is_upload ? copy->dstArray : copy->srcArray;
  const CUdeviceptr memory = is_upload ? copy->srcDevice : copy->dstDevice;
  const size_t bytes = copy->WidthInBytes * copy->Height * copy->Depth;
  const size_t pitch = is_upload ? copy->srcPitch : copy->dstPitch;
  if (!IsArray(array) || bytes != array->bytes.size() || pitch != copy->WidthInBytes ||
      !Reaches(*device, memory, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  PushCopy(*queue, [=] {
    if (is_upload) {
      std::memcpy(array->bytes.data(), reinterpret_cast<const void*>(memory), bytes);
    } else {
      std::memcpy(reinterpret_cast<void*>(memory), array->bytes.data(), bytes);
    }
  });
  return CUDA_SUCCESS;
}

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* descriptor, const CUDA_RESOURCE_VIEW_DESC*) {
  MR_ENTER("cuTexObjectCreate");
  MR_CURRENT(device);
  MrTexture* const made = Make(*device, *resource);
  if (made == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (int axis = 0; axis < 3; ++axis) made->address[axis] = static_cast<unsigned char>(descriptor->addressMode[axis]);
  made->filter = static_cast<unsigned char>(descriptor->filterMode);
  if ((descriptor->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0) made->flags |= 1;
  if ((descriptor->flags & CU_TRSF_READ_AS_INTEGER) == 0) made->flags |= 2;
  *texture = reinterpret_cast<uintptr_t>(made);
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texture) {
  MR_ENTER("cuTexObjectDestroy");
  return Destroy(texture);
}

CUresult cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
  MR_ENTER("cuSurfObjectCreate");
  MR_CURRENT(device);
  if (resource->resType != CU_RESOURCE_TYPE_ARRAY || !IsArray(resource->res.array.hArray) ||
      (resource->res.array.hArray->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *surface = reinterpret_cast<uintptr_t>(Make(*device, *resource));
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject surface) {
  MR_ENTER("cuSurfObjectDestroy");
  return Destroy(surface);
}

}  // extern "C"

}  // namespace millrace::cuda
