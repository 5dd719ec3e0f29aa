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

/// Sends data both ways, between separate allocations and between the pools, with the current access. Thread: control
/// of any device. Blocks.
Result<protocol::PeerRoute> ProbePeers(const PeerEnd& one, const PeerEnd& other);

}  // namespace millrace::cuda
