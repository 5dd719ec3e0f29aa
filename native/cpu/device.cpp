#include "cpu/device.h"

#include <cstring>
#include <utility>

#include "cpu/module.h"

namespace millrace::cpu {

Result<std::unique_ptr<hal::Device>> CpuDevice::Open(hal::DeviceInfo info) {
  auto pool = std::make_shared<Pool>();
  if (Status status = pool->Start(info.multiprocessors); !status.ok()) return status;
  return std::unique_ptr<hal::Device>(std::make_unique<CpuDevice>(std::move(info), std::move(pool)));
}

CpuDevice::CpuDevice(hal::DeviceInfo info, std::shared_ptr<Pool> pool)
    : info_(std::move(info)), pool_(std::move(pool)), heap_(std::make_shared<Heap>(info_.total_memory_bytes)) {}

Result<std::unique_ptr<hal::Stream>> CpuDevice::CreateStream(const hal::StreamRequest& request) {
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  auto core = std::make_shared<StreamCore>(request, pool_);
  streams_.push_back(core);
  return std::unique_ptr<hal::Stream>(std::make_unique<CpuStream>(std::move(core), heap_));
}

Result<std::shared_ptr<hal::Kernel>> CpuDevice::LoadKernel(const hal::KernelRequest& request) {
  return CpuKernel::Load(request);
}

Result<std::unique_ptr<hal::Memory>> CpuDevice::AllocateFaultSlots(uint32_t count) {
  Result<std::unique_ptr<hal::Memory>> slots = heap_->Allocate(uint64_t{count} * sizeof(protocol::FaultSlot));
  if (slots.ok()) std::memset(slots.value()->address(), 0, slots.value()->bytes());
  return slots;
}

void CpuDevice::Close() {
  for (const auto& stream : streams_) {
    if (auto core = stream.lock()) core->WaitUntilIdle();
  }
  streams_.clear();
  pool_->Join();
}

}  // namespace millrace::cpu
