#include "cuda/device.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cuda/call_capture.h"
#include "cuda/communicator.h"
#include "cuda/context_scope.h"
#include "cuda/graph.h"
#include "cuda/memory.h"
#include "cuda/transform.h"

namespace millrace::cuda {

Result<std::unique_ptr<hal::Device>> Device::Open(hal::DeviceInfo info, std::span<protocol::TimelineSlot> timeline) {
  Result<std::shared_ptr<Context>> context = Context::Retain(info.ordinal);
  MR_TRY(context.status());
  std::unique_ptr<Device> device(new Device(std::move(info), timeline, std::move(context).value()));
  {
    const ContextScope scope(device->context_->handle());
    MR_TRY(device->context_->Check(scope.code(), "making the context current"));
    MR_TRY(device->Prepare());
  }
  return std::unique_ptr<hal::Device>(std::move(device));
}

Status Device::Prepare() {
  MR_TRY(context_->Check(Cuda().cuCtxGetStreamPriorityRange(&info_.least_priority, &info_.greatest_priority),
                         "reading the range of stream priorities"));
  // Kernels and copies use the host addresses of page-locked memory.
  for (const CUdevice_attribute needed :
       {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM}) {
    Result<int> has = Attribute(needed);
    MR_TRY(has.status());
    if (has.value() == 0) return {StatusCode::kUnsupported, "using host addresses of page-locked memory on the device"};
  }
  // The rest stays for what is not of the pool: code, graphs, libraries, other processes.
  MR_TRY(pool_.Find(context_, info_.total_memory_bytes / 8 * 7));
  Result<int> words = Attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  MR_TRY(words.status());

  MR_TRY(RegisterHost(std::as_writable_bytes(timeline_)));
  MR_TRY(context_->Check(Cuda().cuMemHostGetDevicePointer(&timeline_address_, timeline_.data(), 0),
                         "finding the timeline's device address"));

  support_.context = context_;
  support_.reaper = std::make_shared<Reaper>(context_, info_.total_memory_bytes);
  support_.pageable = PageableCopies::Of(context_);
  timed_events_ = std::make_shared<TimedEvents>(context_);
  support_.clock = std::make_shared<DeviceClock>(timed_events_);
  support_.has_pools = pool_.handle() != nullptr;
  support_.can_write_words = words.value() != 0;
  // Loaded before anything runs. If the device is too old for their PTX, only these kernels are missing.
  Result<BuiltIns> built_ins = BuiltIns::Load(context_);
  MR_TRY(built_ins.status());
  support_.built_ins = std::move(built_ins).value();
  return context_->Alive();
}

Result<int> Device::Attribute(CUdevice_attribute attribute) {
  int value = 0;
  MR_TRY(context_->Check(Cuda().cuDeviceGetAttribute(&value, attribute, context_->device()), "reading an attribute"));
  return value;
}

Status Device::BindChannelThread() {
  return context_->Check(Cuda().cuCtxSetCurrent(context_->handle()), "making the context current");
}

Result<uint64_t> Device::EnterContext() {
  MR_TRY(context_->Alive());
  MR_TRY(context_->Check(Cuda().cuCtxPushCurrent(context_->handle()), "making the context current"));
  return reinterpret_cast<uintptr_t>(context_->handle());
}

Result<std::unique_ptr<hal::Stream>> Device::CreateStream(const hal::StreamRequest& request) {
  const auto offset = static_cast<uint64_t>(reinterpret_cast<std::byte*>(&request.slot->device_word) -
                                            reinterpret_cast<std::byte*>(timeline_.data()));
  MR_CHECK(offset < timeline_.size_bytes());
  StreamSupport support = support_;
  Result<std::shared_ptr<const Partition>> partition = PartitionOf(request.partition);
  MR_TRY(partition.status());
  support.partition = std::move(partition).value();
  return Stream::Create(std::move(support), request, timeline_address_ + offset);
}

Result<std::shared_ptr<hal::Module>> Device::LoadModule(std::span<const std::byte> image) {
  Result<std::shared_ptr<Module>> module = Module::Load(context_, image);
  MR_TRY(module.status());
  return std::shared_ptr<hal::Module>(std::move(module).value());
}

Result<hal::PlannedCall> Device::LoadPlan(const hal::LibraryPlan& plan) {
  MR_TRY(context_->Alive());
  const ContextScope scope(context_->handle());
  MR_TRY(context_->Check(scope.code(), "making the context current"));
  if (const auto* const transform = std::get_if<hal::TransformPlan>(&plan)) {
    const CufftLibrary* const library = OpenCufft();
    if (library == nullptr) return Status(StatusCode::kUnavailable, "finding cuFFT");
    Result<std::shared_ptr<LibraryKernel>> kernel = PlanTransform(*library, context_, *transform);
    MR_TRY(kernel.status());
    return hal::PlannedCall{.kernel = std::move(kernel).value(), .library = library->info};
  }
  if (const auto* const collective = std::get_if<hal::CollectivePlan>(&plan))
    return PlanCollective(context_, *collective);
  if (cublaslt_ == nullptr) {
    Result<std::shared_ptr<CublasLt>> opened = CublasLt::Open(context_);
    MR_TRY(opened.status());
    cublaslt_ = std::move(opened).value();
  }
  Result<std::shared_ptr<LibraryKernel>> kernel = PlanMatmul(cublaslt_, std::get<hal::MatmulPlan>(plan));
  MR_TRY(kernel.status());
  return hal::PlannedCall{.kernel = std::move(kernel).value(), .library = cublaslt_->info()};
}

Result<std::unique_ptr<hal::CallCapture>> Device::BeginCapture() {
  return CallCapture::Begin(context_);
}

Result<std::unique_ptr<hal::Graph>> Device::BuildGraph(std::vector<hal::GraphNode> nodes) {
  return Graph::Build(context_, std::move(nodes));
}

Result<hal::Division> Device::Divide(std::span<const uint32_t> shares) {
  MR_TRY(context_->Alive());
  const ContextScope scope(context_->handle());
  MR_TRY(context_->Check(scope.code(), "making the context current"));
  return DivideGpu(*context_, shares, partitions_);
}

Status Device::RegisterHost(std::span<std::byte> range) {
  MR_TRY(context_->Alive());
  MR_TRY(RegisterHostRange(context_, range));
  const std::lock_guard lock(mutex_);
  host_ranges_.push_back(range);
  return {};
}

Status Device::UnregisterHost(std::span<std::byte> range) {
  {
    const std::lock_guard lock(mutex_);
    const auto entry = std::find_if(host_ranges_.begin(), host_ranges_.end(), [range](std::span<std::byte> each) {
      return each.data() == range.data() && each.size() == range.size();
    });
    MR_CHECK(entry != host_ranges_.end());
    host_ranges_.erase(entry);
  }
  return UnregisterHostRange(range);
}

Result<std::unique_ptr<hal::Memory>> Device::AllocateFaultSlots(uint32_t count) {
  MR_TRY(context_->Alive());
  return SharedMemory::Allocate(context_, uint64_t{count} * sizeof(protocol::FaultSlot));
}

uint64_t Device::FreeBytes() const {
  size_t free = 0;
  size_t total = 0;
  if (context_->is_lost() || Cuda().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return 0;
  // Unused memory that the pool and the reaper hold is also available.
  return free + pool_.UnusedBytes() + support_.reaper->UnusedBytes();
}

Result<std::unique_ptr<hal::EventHandle>> Device::CreateEvent(protocol::EventKind kind) {
  return EventHandle::Create(timed_events_, kind);
}

Result<double> Device::Elapsed(const hal::EventHandle& start, const hal::EventHandle& end) {
  return static_cast<const EventHandle&>(end).Since(static_cast<const EventHandle&>(start));
}

Result<hal::IpcHandle> Device::ExportEvent(hal::EventHandle& event_handle) {
  return static_cast<EventHandle&>(event_handle).Export();
}

Result<std::unique_ptr<hal::EventHandle>> Device::OpenEvent(const hal::IpcHandle& handle) {
  return EventHandle::Open(timed_events_, handle);
}

Result<std::unique_ptr<hal::Memory>> Device::AllocateInterprocess(uint64_t bytes) {
  MR_TRY(context_->Alive());
  if (std::unique_ptr<Memory> kept = support_.reaper->Reuse(bytes))
    return std::unique_ptr<hal::Memory>(std::move(kept));
  return WithRoom([&] { return Memory::AllocateInterprocess(context_, bytes); });
}

Result<std::unique_ptr<hal::Memory>> Device::WithRoom(
    const std::function<Result<std::unique_ptr<Memory>>()>& allocate) {
  Result<std::unique_ptr<Memory>> memory = allocate();
  if (memory.status().code() == StatusCode::kOutOfMemory && support_.has_pools) {
    // The pool may hold unused memory.
    MR_TRY(pool_.Trim(0));
    memory = allocate();
  }
  if (memory.status().code() == StatusCode::kOutOfMemory) {
    support_.reaper->GiveBack(0);
    memory = allocate();
  }
  MR_TRY(memory.status());
  return std::unique_ptr<hal::Memory>(std::move(memory).value());
}

Result<hal::IpcHandle> Device::ExportMemory(const hal::Memory& memory) {
  return static_cast<const Memory&>(memory).Export();
}

Result<std::unique_ptr<hal::Memory>> Device::OpenMemory(const hal::IpcHandle& handle, uint64_t bytes) {
  Result<std::unique_ptr<Memory>> memory = Memory::Open(context_, handle, bytes);
  // The other process may have reused an address whose old memory is still mapped here, unused.
  if (memory.status().driver_code() == CUDA_ERROR_ALREADY_MAPPED ||
      memory.status().code() == StatusCode::kOutOfMemory) {
    support_.reaper->GiveBack(UINT64_MAX);
    memory = Memory::Open(context_, handle, bytes);
  }
  MR_TRY(memory.status());
  return std::unique_ptr<hal::Memory>(std::move(memory).value());
}

Result<hal::PoolStats> Device::PoolUse() {
  Result<hal::PoolStats> use = pool_.Use();
  MR_TRY(use.status());
  hal::PoolStats stats = use.value();
  stats.reserved += support_.reaper->Bytes();
  stats.reserved_high += support_.reaper->HighBytes();
  return stats;
}

Status Device::Trim(uint64_t keep_bytes) {
  MR_TRY(pool_.Trim(keep_bytes));
  Result<hal::PoolStats> use = pool_.Use();
  MR_TRY(use.status());
  const uint64_t reserved = use.value().reserved;
  support_.reaper->GiveBack(keep_bytes > reserved ? keep_bytes - reserved : 0);
  return context_->Alive();
}

Status Device::ResetHighWater() {
  MR_TRY(pool_.ResetHighWater());
  support_.reaper->ResetHigh();
  return {};
}

Result<hal::PeerState> Device::Peer(uint32_t ordinal, protocol::PeerWhat what) {
  return QueryPeer(End(), ordinal, what);
}

Status Device::SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) {
  return millrace::cuda::SetPeer(End(), ordinal, what, is_granted);
}

Result<protocol::PeerRoute> Device::ProbePeer(hal::Device& other) {
  return ProbePeers(End(), static_cast<Device&>(other).End());
}

void Device::Close() {
  if (context_ == nullptr) return;
  if (!context_->is_lost()) {
    const ContextScope scope(context_->handle());
    if (scope.code() == CUDA_SUCCESS) {
      std::ignore = context_->Check(Cuda().cuCtxSynchronize(), "waiting for the device's last work");
      // Absent if opening failed halfway.
      if (support_.reaper != nullptr) support_.reaper->GiveBack(0);
      // The context stays, but the pool's unused memory goes back to the device.
      if (support_.has_pools) {
        std::ignore = pool_.Trim(0);
        // The next user of the device then sees high-water marks of its own time.
        std::ignore = pool_.ResetHighWater();
      }
    }
  }
  EndingDevices::Remove(this);
  // Unlocks the timeline and all other page-locked ranges before their memory is freed.
  std::vector<std::span<std::byte>> ranges;
  {
    const std::lock_guard lock(mutex_);
    ranges.swap(host_ranges_);
  }
  for (const std::span<std::byte> range : ranges) std::ignore = UnregisterHostRange(range);

  CUcontext current = nullptr;
  if (Cuda().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context_->handle())
    Cuda().cuCtxSetCurrent(nullptr);
  // Streams, memory and kernels that outlive this call keep the context alive.
  support_ = {};
  timed_events_.reset();
  cublaslt_.reset();
  pool_ = {};
  context_.reset();
}

}  // namespace millrace::cuda
