// Textures of a CPU device: plain memory without gaps, and the values that kernels get.
#include <algorithm>
#include <memory>

#include "cpu/device.h"
#include "cpu/shim/launch_abi.h"
#include "cpu/stream.h"

namespace millrace::cpu {

namespace {

class Texture final : public hal::Memory {
 public:
  explicit Texture(const hal::TextureRequest& request) {
    const protocol::TextureShape& shape = request.shape;
    value_.data = reinterpret_cast<char*>(request.address);
    value_.pitch = request.pitch == 0 ? hal::RowBytes(shape) : request.pitch;
    value_.width = static_cast<int>(shape.width);
    value_.height = static_cast<int>(std::max<uint32_t>(shape.height, 1));
    value_.depth = static_cast<int>(std::max<uint32_t>(shape.depth, 1));
    value_.layer = value_.pitch * static_cast<uint64_t>(value_.height);
    value_.format = shape.format;
    value_.channels = shape.channels;
    value_.filter = static_cast<unsigned char>(request.filter);
    for (int axis = 0; axis < 3; ++axis) value_.address[axis] = static_cast<unsigned char>(request.address_modes[axis]);
    value_.flags = static_cast<unsigned char>(request.flags);
    value_.element_bytes = static_cast<unsigned char>(hal::ElementBytes(shape));
  }
  [[nodiscard]] std::byte* address() const override {
    return const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&value_));
  }
  [[nodiscard]] uint64_t bytes() const override { return 0; }

 private:
  MrTexture value_{};
};

}  // namespace

Result<std::unique_ptr<hal::Memory>> CpuDevice::AllocateArray(const protocol::TextureShape& shape) {
  return heap_->Allocate(hal::TotalBytes(shape));
}

Result<std::unique_ptr<hal::Memory>> CpuDevice::CreateTexture(const hal::TextureRequest& request) {
  return std::unique_ptr<hal::Memory>(std::make_unique<Texture>(request));
}

Status CpuStream::CopyArray(hal::Ticket ticket, const hal::ArrayCopy& copy) {
  const uint64_t bytes = hal::TotalBytes(copy.shape);
  return copy.is_upload ? Copy(ticket, copy.array, copy.memory, bytes, {})
                        : Copy(ticket, copy.memory, copy.array, bytes, {});
}

}  // namespace millrace::cpu
