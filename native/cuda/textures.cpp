// Textures of a CUDA device: arrays, copies to and from them, texture and surface objects.
#include <algorithm>
#include <utility>

#include "cuda/context_scope.h"
#include "cuda/device.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

namespace millrace::cuda {

namespace {

using protocol::TextureFlag;
using protocol::TextureFormat;

CUarray_format FormatOf(const protocol::TextureShape& shape) {
  switch (static_cast<TextureFormat>(shape.format)) {
    case TextureFormat::kU8:
      return CU_AD_FORMAT_UNSIGNED_INT8;
    case TextureFormat::kU16:
      return CU_AD_FORMAT_UNSIGNED_INT16;
    case TextureFormat::kU32:
      return CU_AD_FORMAT_UNSIGNED_INT32;
    case TextureFormat::kI8:
      return CU_AD_FORMAT_SIGNED_INT8;
    case TextureFormat::kI16:
      return CU_AD_FORMAT_SIGNED_INT16;
    case TextureFormat::kI32:
      return CU_AD_FORMAT_SIGNED_INT32;
    case TextureFormat::kF16:
      return CU_AD_FORMAT_HALF;
    default:
      return CU_AD_FORMAT_FLOAT;
  }
}

CUDA_RESOURCE_DESC ResourceOf(const hal::TextureRequest& request) {
  CUDA_RESOURCE_DESC resource{};
  const auto address = reinterpret_cast<CUdeviceptr>(request.address);
  const protocol::TextureShape& shape = request.shape;
  if (request.pitch == 0) {
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = reinterpret_cast<CUarray>(request.address);
  } else if (shape.height == 0) {
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {address, FormatOf(shape), shape.channels, hal::RowBytes(shape)};
  } else {
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D = {address, FormatOf(shape), shape.channels, shape.width, shape.height, request.pitch};
  }
  return resource;
}

CUDA_TEXTURE_DESC DescriptorOf(const hal::TextureRequest& request) {
  CUDA_TEXTURE_DESC descriptor{};
  // The protocol has CUDA's numbers.
  for (int axis = 0; axis < 3; ++axis)
    descriptor.addressMode[axis] = static_cast<CUaddress_mode>(request.address_modes[axis]);
  descriptor.filterMode = static_cast<CUfilter_mode>(request.filter);
  if (request.Has(TextureFlag::kNormalizedCoordinates)) descriptor.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (!request.Has(TextureFlag::kNormalizedFloat)) descriptor.flags |= CU_TRSF_READ_AS_INTEGER;
  return descriptor;
}

}  // namespace

Result<std::unique_ptr<Memory>> Memory::AllocateArray(std::shared_ptr<Context> context,
                                                      const protocol::TextureShape& shape) {
  MR_TRY(context->Alive());
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{
      .Width = shape.width,
      .Height = shape.height,
      .Depth = shape.depth,
      .Format = FormatOf(shape),
      .NumChannels = shape.channels,
      .Flags = shape.has_surface != 0 ? CUDA_ARRAY3D_SURFACE_LDST : 0,
  };
  CUarray array = nullptr;
  MR_TRY(context->Check(Cuda().cuArray3DCreate(&array, &descriptor), "allocating a CUDA array"));
  const uint64_t bytes = hal::TotalBytes(shape);
  const auto address = reinterpret_cast<CUdeviceptr>(array);
  return std::unique_ptr<Memory>(new Memory(std::move(context), address, bytes, bytes, Origin::kArray));
}

Result<std::unique_ptr<Memory>> Memory::CreateTexture(std::shared_ptr<Context> context,
                                                      const hal::TextureRequest& request) {
  const CUDA_RESOURCE_DESC resource = ResourceOf(request);
  unsigned long long object = 0;
  if (request.Has(TextureFlag::kSurface)) {
    MR_TRY(context->Check(Cuda().cuSurfObjectCreate(&object, &resource), "creating a surface object"));
    return std::unique_ptr<Memory>(new Memory(std::move(context), object, 0, 0, Origin::kSurface));
  }
  const CUDA_TEXTURE_DESC descriptor = DescriptorOf(request);
  MR_TRY(
      context->Check(Cuda().cuTexObjectCreate(&object, &resource, &descriptor, nullptr), "creating a texture object"));
  return std::unique_ptr<Memory>(new Memory(std::move(context), object, 0, 0, Origin::kTexture));
}

Result<std::unique_ptr<hal::Memory>> Device::AllocateArray(const protocol::TextureShape& shape) {
  return WithRoom([&] { return Memory::AllocateArray(context_, shape); });
}

Result<std::unique_ptr<hal::Memory>> Device::CreateTexture(const hal::TextureRequest& request) {
  MR_TRY(context_->Alive());
  Result<std::unique_ptr<Memory>> made = Memory::CreateTexture(context_, request);
  MR_TRY(made.status());
  return std::unique_ptr<hal::Memory>(std::move(made).value());
}

Status Stream::CopyArray(hal::Ticket ticket, const hal::ArrayCopy& copy) {
  const uint64_t row = hal::RowBytes(copy.shape);
  const size_t height = std::max<uint32_t>(copy.shape.height, 1);
  CUDA_MEMCPY3D params{};
  params.WidthInBytes = row;
  params.Height = height;
  params.Depth = std::max<uint32_t>(copy.shape.depth, 1);
  const auto array = reinterpret_cast<CUarray>(copy.array);
  const auto memory = reinterpret_cast<CUdeviceptr>(copy.memory);
  if (copy.is_upload) {
    params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    params.srcDevice = memory;
    params.srcPitch = row;
    params.srcHeight = height;
    params.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    params.dstArray = array;
  } else {
    params.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    params.srcArray = array;
    params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    params.dstDevice = memory;
    params.dstPitch = row;
    params.dstHeight = height;
  }
  return Submit(ticket, Use::kWork, [&] {
    return context_.Check(Cuda().cuMemcpy3DAsync(&params, handle_), "copying to or from a texture");
  });
}

}  // namespace millrace::cuda
