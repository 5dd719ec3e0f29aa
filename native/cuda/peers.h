// Which devices of the process may reach each other's memory, and whether bytes that travel between two arrive.
//
// Who was let in is a matter of the contexts, which the process keeps (context.h), so it is remembered for the process:
// closing a device and opening it again changes nothing. Another user of the contexts may let devices in as well; of
// that only the pool can tell.
#pragma once

#include <memory>

#include "cuda/context.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// A device with a part in this: its pool is null where it has none.
struct PeerEnd {
  std::shared_ptr<Context> context;
  CUmemoryPool pool = nullptr;
};

/// Thread: control of any device. Makes no context.
Result<hal::PeerState> QueryPeer(const PeerEnd& owner, uint32_t peer, protocol::PeerWhat what);

/// Lets device `peer` reach the memory of `owner`, or no longer. The first permission sends data both ways and compares
/// it: kUnsupported, and no permission, where wrong bytes arrive. Thread: control of any device. Blocks.
Status SetPeer(const PeerEnd& owner, uint32_t peer, protocol::PeerWhat what, bool is_granted);

/// Sends data both ways, between allocations of their own and between the pools, as things stand now. Thread: control
/// of any device. Blocks.
Result<protocol::PeerRoute> ProbePeers(const PeerEnd& one, const PeerEnd& other);

}  // namespace millrace::cuda
