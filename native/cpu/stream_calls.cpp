// The calls of a stream of a CPU device: each makes an item of its request and appends it. Thread: channel.

#include <utility>

#include "cpu/dynamic_parallelism.h"
#include "cpu/launch_item.h"
#include "cpu/module.h"
#include "cpu/stream.h"
#include "cpu/strided.h"

namespace millrace::cpu {

using hal::Ticket;

Status CpuStream::Launch(Ticket ticket, const hal::LaunchRequest& request) {
  const auto& kernel = *static_cast<const CpuKernel*>(request.kernel);
  MR_TRY(kernel.CheckParams(request.params.size(), request.wide));
  if (request.is_cooperative || kernel.NeedsResident(request.grid)) return LaunchCooperative(ticket, request);
  core_->Submit(ticket, MakeLaunchItem(request));
  return {};
}

Status CpuStream::LaunchGraph(Ticket ticket, const hal::GraphLaunchRequest& request) {
  core_->Submit(ticket, std::make_shared<GraphLaunch>(static_cast<const CpuGraph*>(request.graph)->core(), request));
  return {};
}

Status CpuStream::LaunchCooperative(Ticket ticket, const hal::LaunchRequest& request) {
  if (static_cast<const CpuKernel*>(request.kernel)->is_launching()) {
    return {StatusCode::kUnsupported, "launching kernels from a cooperative launch"};
  }
  auto grid = std::make_shared<CooperativeGrid>(request, core_->fuzzer());
  MR_TRY(threads_->Grow(most_cooperative_blocks_, grid->block_count()));
  most_cooperative_blocks_ = std::max(most_cooperative_blocks_, grid->block_count());
  core_->Submit(ticket, StreamCore::CooperativeRun{std::move(grid), threads_});
  return {};
}

std::shared_ptr<LaunchItem> CpuStream::MakeLaunchItem(const hal::LaunchRequest& request) const {
  if (!static_cast<const CpuKernel*>(request.kernel)->is_launching()) {
    return std::make_shared<LaunchItem>(request, core_->priority());
  }
  const auto hidden = request.params.last(2);
  auto* slot = *static_cast<protocol::FaultSlot**>(hidden[0]);
  auto* fault_word = *static_cast<uint32_t**>(hidden[1]);
  auto launch_tree = std::make_shared<LaunchTree>(core_->pool(), grid_limits_, slot, fault_word, core_->priority());
  return std::make_shared<LaunchTreeGrid>(request, std::move(launch_tree));
}

Status CpuStream::Copy(Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes,
                       const hal::HostLeases& host) {
  const cpu::Copy copy{dst, src, bytes};
  if (bytes >= kSweepBytes) {
    core_->Submit(ticket, std::make_shared<ParallelCopy>(HostCopy(copy, host), core_->priority()));
  } else if (host.HasAny()) {
    core_->Submit(ticket, std::make_unique<const HostCopy>(copy, host));
  } else {
    core_->Submit(ticket, copy);
  }
  return {};
}

Status CpuStream::CopyBatch(Ticket ticket, std::span<const hal::BatchedCopy> copies) {
  core_->Submit(ticket, std::make_shared<BatchCopy>(copies, core_->priority()));
  return {};
}

Status CpuStream::Fill(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) {
  const cpu::Fill fill{dst, element_bytes, pattern, count};
  if (count * element_bytes < kSweepBytes) {
    core_->Submit(ticket, fill);
  } else {
    core_->Submit(ticket, std::make_shared<ParallelFill>(fill, core_->priority()));
  }
  return {};
}

Status CpuStream::CopyPeer(Ticket ticket, const hal::PeerCopy& copy) {
  return Copy(ticket, copy.dst, copy.src, copy.bytes);
}

Status CpuStream::CopyStrided(Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                              std::span<const hal::StridedAxis> axes) {
  const StridedShape shape(dst, src, element_bytes, axes);
  if (shape.IsRun()) return Copy(ticket, shape.dst(), shape.src(), shape.element_count() * element_bytes);
  core_->Submit(ticket, std::make_shared<StridedSweep>(shape, std::nullopt, core_->priority()));
  return {};
}

Status CpuStream::FillStrided(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                              std::span<const hal::StridedAxis> axes) {
  const StridedShape shape(dst, nullptr, element_bytes, axes);
  if (shape.IsRun()) return Fill(ticket, shape.dst(), element_bytes, pattern, shape.element_count());
  core_->Submit(ticket, std::make_shared<StridedSweep>(shape, pattern, core_->priority()));
  return {};
}

Status CpuStream::CopyPageable(std::byte*, const std::byte*, uint64_t) {
  MR_CHECK(!"a CPU device needs no staging: NeedsLockedMemory() is false");
  return {};
}

Status CpuStream::Record(Ticket ticket, hal::EventHandle& event_handle) {
  core_->Submit(ticket, static_cast<CpuEventHandle&>(event_handle).stamp());
  return {};
}

Status CpuStream::WaitEvent(Ticket, hal::EventHandle&) {
  return {StatusCode::kUnsupported, "waiting for an event of another process on a CPU device"};
}

Status CpuStream::Wait(Ticket ticket, hal::Stream& other, Ticket until) {
  const std::shared_ptr<StreamCore>& core = static_cast<CpuStream&>(other).core_;
  const bool is_own = core->pool() == core_->pool();
  if (is_own ? !core->HasAccepted(until) : !core->Promise(until, core_, ticket)) {
    return {StatusCode::kUpstream, "waiting for a stream of a destroyed device"};
  }
  core_->Submit(ticket, StreamCore::Wait{core, until});
  return {};
}

Status CpuStream::Nop(Ticket ticket) {
  core_->Submit(ticket, StreamCore::Nop{});
  return {};
}

Result<std::unique_ptr<hal::Memory>> CpuStream::Allocate(Ticket ticket, uint64_t bytes) {
  Result<std::unique_ptr<hal::Memory>> memory = heap_->Allocate(bytes);
  if (memory.ok()) core_->Submit(ticket, StreamCore::Nop{});
  return memory;
}

Status CpuStream::Free(Ticket ticket, std::unique_ptr<hal::Memory> memory) {
  core_->Submit(ticket, StreamCore::Free{std::move(memory)});
  return {};
}

}  // namespace millrace::cpu
