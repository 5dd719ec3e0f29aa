// Peer access between devices of the process, and the check that copies between them arrive intact.
//
// Peer access belongs to the contexts, which the process keeps (context.h), so the process remembers it: closing and
// reopening a device does not change it. Another user of the contexts may grant access too; only the pool can report
// that.
#pragma once

#include <memory>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// A device of the pair. `pool` is null if it has none.
struct PeerEnd {
  std::shared_ptr<Context> context;
  CUmemoryPool pool = nullptr;
};

/// Thread: control of any device. Creates no context.
Result<hal::PeerState> QueryPeer(const PeerEnd& owner, uint32_t peer, protocol::PeerWhat what);

/// Grants device `peer` access to the memory of `owner`, or revokes it. The first grant sends data both ways and
/// compares it: kUnsupported, without access, if it arrives corrupted. Thread: control of any device. Blocks.
Status SetPeer(const PeerEnd& owner, uint32_t peer, protocol::PeerWhat what, bool is_granted);

/// Device `peer` accesses the pool of `owner` while this exists, whatever SetPeer revokes meanwhile. A graph needs it
/// for its copies between the two: the driver refuses a copy node whose device cannot access a pool's memory, although
/// cuMemcpyPeerAsync needs no access. QueryPeer does not report access that only this has granted.
/// Thread: any. Making and destroying it blocks.
class PoolAccess {
 public:
  /// kUnsupported, as SetPeer, if the devices are no peers or data arrives corrupted.
  static Result<std::unique_ptr<PoolAccess>> Take(const PeerEnd& owner, const std::shared_ptr<Context>& peer);
  ~PoolAccess();

  PoolAccess(const PoolAccess&) = delete;
  PoolAccess& operator=(const PoolAccess&) = delete;

  [[nodiscard]] bool IsOf(const Context& owner, const Context& peer) const {
    return owner_.context.get() == &owner && peer_.get() == &peer;
  }

 private:
  PoolAccess(PeerEnd owner, std::shared_ptr<Context> peer) : owner_(std::move(owner)), peer_(std::move(peer)) {}

  const PeerEnd owner_;
  const std::shared_ptr<Context> peer_;
};

/// Sends data both ways, between separate allocations and between the pools, with the current access. Thread: control
/// of any device. Blocks.
Result<protocol::PeerRoute> ProbePeers(const PeerEnd& one, const PeerEnd& other);

}  // namespace millrace::cuda
