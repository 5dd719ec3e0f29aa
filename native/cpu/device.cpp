#include "cpu/device.h"

#include <atomic>
#include <utility>

#include "cpu/event_handle.h"
#include "cpu/graph.h"
#include "cpu/module.h"

namespace millrace::cpu {
namespace {

/// Not in the heap: the host reads these bytes.
class SlotPages final : public hal::Memory {
 public:
  [[nodiscard]] bool Map(uint64_t bytes) {
    bytes_ = bytes;
    address_ = pages_.Reserve(bytes, alignof(protocol::FaultSlot));
    return address_ != nullptr;
  }
  [[nodiscard]] std::byte* address() const override { return address_; }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  GuardedPages pages_;
  std::byte* address_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<hal::Device>> CpuDevice::Open(hal::DeviceInfo info) {
  Result<std::unique_ptr<ScheduleFuzzer>> fuzzer = ScheduleFuzzer::FromEnvironment(info.ordinal);
  if (!fuzzer.ok()) return fuzzer.status();
  Result<std::shared_ptr<const OpenBlas>> openblas = OpenBlas::FromEnvironment();
  MR_TRY(openblas.status());
  if (openblas.value() != nullptr) info.libraries.push_back(openblas.value()->info());
  auto pool = std::make_shared<ThreadPool>(std::move(fuzzer.value()));
  if (Status status = pool->Start(info.multiprocessors); !status.ok()) return status;
  return std::unique_ptr<hal::Device>(
      std::make_unique<CpuDevice>(std::move(info), std::move(pool), std::move(openblas).value()));
}

CpuDevice::CpuDevice(hal::DeviceInfo info, std::shared_ptr<ThreadPool> pool, std::shared_ptr<const OpenBlas> openblas)
    : info_(std::move(info)),
      pool_(std::move(pool)),
      heap_(std::make_shared<Heap>(info_.total_memory_bytes)),
      openblas_(std::move(openblas)) {}

Status CpuDevice::Reseed(uint32_t seed) {
  return Restart(std::make_unique<ScheduleFuzzer>(seed, info_.ordinal), info_.multiprocessors);
}

Status CpuDevice::LimitThreads(uint32_t threads) {
  Result<std::unique_ptr<ScheduleFuzzer>> fuzzer = ScheduleFuzzer::FromEnvironment(info_.ordinal);
  MR_TRY(fuzzer.status());
  MR_TRY(Restart(std::move(fuzzer).value(), threads));
  info_.multiprocessors = threads;
  return {};
}

Status CpuDevice::Restart(std::unique_ptr<ScheduleFuzzer> fuzzer, uint32_t threads) {
  auto pool = std::make_shared<ThreadPool>(std::move(fuzzer));
  MR_TRY(pool->Start(threads));
  pool_->Join();
  pool_ = std::move(pool);
  return {};
}

Result<hal::Division> CpuDevice::Divide(std::span<const uint32_t> shares) {
  MR_TRY(partitions_.CheckNone());
  uint64_t wanted = 0;
  for (const uint32_t share : shares) wanted += share;
  if (wanted > info_.multiprocessors) return hal::Division{};
  std::vector<std::shared_ptr<ThreadPool>> pools;
  Status status;
  for (const uint32_t share : shares) {
    const uint32_t threads = share == 0 ? info_.multiprocessors - static_cast<uint32_t>(wanted) : share;
    ScheduleFuzzer* const own = pool_->fuzzer();
    pools.push_back(std::make_shared<ThreadPool>(
        own == nullptr ? nullptr : std::make_unique<ScheduleFuzzer>(own->Below(UINT32_MAX), info_.ordinal)));
    if (status.ok()) status = pools.back()->Start(threads);
  }
  hal::Division division;
  for (auto& pool : pools) {
    const uint32_t threads = pool->thread_count();
    if (!status.ok())
      pool->Join();
    else
      division.partitions.push_back({partitions_.Add(std::make_shared<const CpuPartition>(std::move(pool))), threads});
  }
  if (!status.ok()) return status;
  return division;
}

Status CpuDevice::EndPartition(uint32_t id) {
  Result<std::shared_ptr<const CpuPartition>> ended = partitions_.Take(id);
  MR_TRY(ended.status());
  ended.value()->pool->Join();
  return {};
}

Result<std::shared_ptr<ThreadPool>> CpuDevice::PoolOf(uint32_t partition) {
  Result<std::shared_ptr<const CpuPartition>> found = partitions_.Find(partition);
  MR_TRY(found.status());
  return found.value() == nullptr ? pool_ : found.value()->pool;
}

Result<std::unique_ptr<hal::Stream>> CpuDevice::CreateStream(const hal::StreamRequest& request) {
  if (request.foreign) return Status(StatusCode::kUnsupported, "using a driver's stream on a CPU device");
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  Result<std::shared_ptr<const CpuPartition>> found = partitions_.Find(request.partition);
  MR_TRY(found.status());
  std::shared_ptr<const CpuPartition> partition = std::move(found).value();
  auto core = std::make_shared<StreamCore>(request, partition == nullptr ? pool_ : partition->pool);
  streams_.push_back(core);
  return std::unique_ptr<hal::Stream>(
      std::make_unique<CpuStream>(std::move(core), heap_, block_threads_, grid_limits(), std::move(partition)));
}

GridLimits CpuDevice::grid_limits() const {
  const auto& [bx, by, bz] = info_.max_block;
  const auto& [gx, gy, gz] = info_.max_grid;
  return {info_.max_threads_per_block, {bx, by, bz}, {gx, gy, gz}, info_.max_shared_bytes};
}

Result<std::unique_ptr<hal::Graph>> CpuDevice::BuildGraph(std::vector<hal::GraphNode> nodes) {
  return CpuGraph::Build(nodes);
}

Result<std::shared_ptr<hal::Module>> CpuDevice::LoadModule(std::span<const std::byte> image) {
  return CpuModule::Load(image, info_);
}

Result<hal::PlannedCall> CpuDevice::LoadPlan(const hal::LibraryPlan& plan) {
  const auto* const product = std::get_if<hal::MatmulPlan>(&plan);
  if (openblas_ == nullptr || product == nullptr) return Status(StatusCode::kUnavailable, "finding a library");
  Result<std::shared_ptr<hal::Kernel>> kernel = openblas_->Plan(*product, pool_->thread_count());
  MR_TRY(kernel.status());
  return hal::PlannedCall{.kernel = std::move(kernel).value(), .library = openblas_->info()};
}

Result<std::unique_ptr<hal::Memory>> CpuDevice::AllocateFaultSlots(uint32_t count) {
  auto slots = std::make_unique<SlotPages>();
  if (slots->Map(uint64_t{count} * sizeof(protocol::FaultSlot))) return std::unique_ptr<hal::Memory>(std::move(slots));
  return Status(StatusCode::kOutOfMemory, "allocating fault slots of the CPU device");
}

Result<std::unique_ptr<hal::EventHandle>> CpuDevice::CreateEvent(protocol::EventKind kind) {
  if (kind != protocol::EventKind::kTiming) return kOneProcess;
  return std::unique_ptr<hal::EventHandle>(std::make_unique<CpuEventHandle>());
}

Result<double> CpuDevice::Elapsed(const hal::EventHandle& start, const hal::EventHandle& end) {
  const Timestamp& first = *static_cast<const CpuEventHandle&>(start).stamp();
  const Timestamp& second = *static_cast<const CpuEventHandle&>(end).stamp();
  if (!first.IsTaken() || !second.IsTaken()) return Status(StatusCode::kState, "timing an event that is not complete");
  return static_cast<double>(second.nanoseconds() - first.nanoseconds()) / 1e6;
}

Status CpuDevice::SetReleaseThreshold(uint64_t bytes) {
  heap_->Keep(bytes);
  return {};
}

Status CpuDevice::Trim(uint64_t keep_bytes) {
  heap_->Trim(keep_bytes);
  return {};
}

Status CpuDevice::ResetHighWater() {
  heap_->ResetHighWater();
  return {};
}

namespace {

/// Of the process: [owner][peer][what].
std::atomic<bool>& Grant(uint32_t owner, uint32_t peer, protocol::PeerWhat what) {
  constexpr uint32_t kMost = hal::PeerGrants::kMaxDevices;
  static std::atomic<bool> grants[kMost][kMost][2];
  return grants[owner][peer][what == protocol::PeerWhat::kPool ? 1 : 0];
}

}  // namespace

Result<hal::PeerState> CpuDevice::Peer(uint32_t ordinal, protocol::PeerWhat what) {
  if (ordinal == info_.ordinal) return hal::PeerState{true, true};
  if (ordinal >= hal::PeerGrants::kMaxDevices) return hal::PeerState{};
  return hal::PeerState{true, Grant(info_.ordinal, ordinal, what).load()};
}

Status CpuDevice::SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) {
  if (ordinal == info_.ordinal) return {};
  if (ordinal >= hal::PeerGrants::kMaxDevices) {
    if (!is_granted) return {};
    return {StatusCode::kUnsupported, "accessing memory of a device that is not a peer"};
  }
  Grant(info_.ordinal, ordinal, what).store(is_granted);
  return {};
}

void CpuDevice::Close() {
  for (const auto& stream : streams_) {
    if (auto core = stream.lock()) core->WaitUntilIdle();
  }
  streams_.clear();
  block_threads_->Join();
  pool_->Join();
  for (const auto& [id, partition] : partitions_.TakeAll()) partition->pool->Join();
  for (const auto& core : given_up_) core->Clear();
  given_up_.clear();
}

}  // namespace millrace::cpu
