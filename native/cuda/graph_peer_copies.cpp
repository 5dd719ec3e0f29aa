// The nodes of copies between devices: one copy if the devices are peers, otherwise copies through host memory.
#include <algorithm>
#include <utility>

#include "cuda/device.h"
#include "cuda/graph_nodes.h"

namespace millrace::cuda {

namespace {

/// A longer copy takes turns in one block. Page-locking costs about 0.3 ms per MiB, and each such node has a block.
constexpr uint64_t kStagingBytes = 4 << 20;

}  // namespace

Result<CUgraphNode> GraphWriter::WritePeerCopy(CUgraph graph, Before before, const hal::PeerCopy& copy) {
  const auto& to = *static_cast<const Device*>(copy.dst_device);
  const auto& from = *static_cast<const Device*>(copy.src_device);
  if (copy.route == protocol::PeerRoute::kStaged) return WriteStagedCopy(graph, before, copy);
  const auto is_same = [&](const auto& access) { return access->IsOf(*from.context(), *to.context()); };
  if (std::ranges::none_of(parts_.accesses, is_same)) {
    Result<std::unique_ptr<PoolAccess>> access = PoolAccess::Take(from.End(), to.context());
    if (access.status().code() == StatusCode::kUnsupported) return WriteStagedCopy(graph, before, copy);
    MR_TRY(access.status());
    parts_.accesses.push_back(std::move(access).value());
  }
  return WriteCopy(graph, before, *to.context(), AddressOf(copy.dst), AddressOf(copy.src), copy.bytes);
}

Result<CUgraphNode> GraphWriter::WriteStagedCopy(CUgraph graph, Before before, const hal::PeerCopy& copy) {
  if (copy.bytes == 0) return WriteEmpty(graph, before);
  Result<std::unique_ptr<LockedBlock>> block = LockedBlock::Allocate(home_, std::min(copy.bytes, kStagingBytes));
  MR_TRY(block.status());
  const uint64_t host = AddressOf(block.value()->data());
  parts_.staging.push_back(std::move(block).value());
  const std::shared_ptr<Context>& to = static_cast<Device*>(copy.dst_device)->context();
  const std::shared_ptr<Context>& from = static_cast<Device*>(copy.src_device)->context();
  CUgraphNode last = nullptr;
  for (uint64_t at = 0; at < copy.bytes; at += kStagingBytes) {
    const uint64_t bytes = std::min(copy.bytes - at, kStagingBytes);
    Result<CUgraphNode> taken =
        WriteCopy(graph, at == 0 ? before : Before(&last, 1), *from, host, AddressOf(copy.src) + at, bytes);
    MR_TRY(taken.status());
    const CUgraphNode first = taken.value();
    Result<CUgraphNode> given = WriteCopy(graph, Before(&first, 1), *to, AddressOf(copy.dst) + at, host, bytes);
    MR_TRY(given.status());
    last = given.value();
  }
  return last;
}

}  // namespace millrace::cuda
