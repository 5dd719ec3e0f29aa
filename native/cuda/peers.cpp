#include "cuda/peers.h"

#include <array>
#include <mutex>

#include "cuda/context_scope.h"
#include "cuda/copies_through_host.h"
#include "cuda/driver_errors.h"

namespace millrace::cuda {

using protocol::PeerRoute;
using protocol::PeerWhat;

namespace {

struct Grants {
  std::mutex mutex;  // Held across the driver calls, so that the table always matches the driver's state.
  /// [owner][peer]: whether the peer's context may access the owner's allocations.
  std::array<std::array<bool, kMaxDevices>, kMaxDevices> memory = {};
  /// [owner][peer]: the PoolAccess objects, and whether the pool is open for them only.
  struct Pool {
    uint32_t users = 0;
    bool is_for_users_only = false;
  };
  std::array<std::array<Pool, kMaxDevices>, kMaxDevices> pools = {};
};

Grants& GetGrants() {
  static auto* grants = new Grants;  // Never destroyed, because native threads may outlive static objects.
  return *grants;
}

Result<bool> CanReach(const PeerEnd& owner, uint32_t peer, PeerWhat what) {
  if (peer >= kMaxDevices) return Status(StatusCode::kUnavailable, "finding the peer");
  if (what == PeerWhat::kPool && owner.pool == nullptr) return false;
  CUdevice device = 0;
  MR_TRY(FromDriver(Cuda().cuDeviceGet(&device, static_cast<int>(peer)), "finding the peer"));
  int can = 0;
  MR_TRY(FromDriver(Cuda().cuDeviceCanAccessPeer(&can, device, owner.context->device()),
                    "querying whether the devices are peers"));
  return can != 0;
}

/// Whether the peer may access the owner's pool.
Result<bool> IsPoolOpen(const PeerEnd& owner, uint32_t peer) {
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(peer)};
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  MR_TRY(owner.context->Check(Cuda().cuMemPoolGetAccess(&flags, owner.pool, &location), "reading the pool's access"));
  return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

Status SetPoolAccess(const PeerEnd& owner, uint32_t peer, bool is_granted) {
  const CUmemAccessDesc access = {
      {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(peer)},
      is_granted ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE,
  };
  return owner.context->Check(Cuda().cuMemPoolSetAccess(owner.pool, &access, 1), "setting the pool's access");
}

/// Runs in the peer's context, which is the accessing one.
Status SetMemoryAccess(const PeerEnd& owner, Context& peer, bool is_granted) {
  const ContextScope scope(peer.handle());
  MR_TRY(peer.Check(scope.code(), "making the peer's context current"));
  const CUresult code = is_granted ? Cuda().cuCtxEnablePeerAccess(owner.context->handle(), 0)
                                   : Cuda().cuCtxDisablePeerAccess(owner.context->handle());
  // Another user of the contexts made the change before.
  if (code == (is_granted ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)) return {};
  return CheckAmong(peer, {owner.context.get()}, code, "setting peer access");
}

Result<PeerEnd> FindPeer(uint32_t ordinal) {
  Result<std::shared_ptr<Context>> context = Context::Retain(ordinal);
  if (!context.ok()) {
    const Status status = context.status();
    if (status.code() != StatusCode::kDeviceLost) return status;
    return Status(StatusCode::kUpstream, "accessing a lost peer", status.driver_code());
  }
  PeerEnd peer = {std::move(context).value(), nullptr};
  if (Cuda().cuDeviceGetDefaultMemPool(&peer.pool, peer.context->device()) != CUDA_SUCCESS) peer.pool = nullptr;
  return peer;
}

/// Whether the process has the peer's context; without one there is no access to revoke.
Result<bool> IsActive(uint32_t ordinal) {
  CUdevice device = 0;
  MR_TRY(FromDriver(Cuda().cuDeviceGet(&device, static_cast<int>(ordinal)), "finding the peer"));
  unsigned int flags = 0;
  int is_active = 0;
  MR_TRY(FromDriver(Cuda().cuDevicePrimaryCtxGetState(device, &flags, &is_active), "reading the peer's state"));
  return is_active != 0;
}

/// Sets one permission; if it is new, checks that data arrives intact. Needs the mutex.
Status Set(Grants& grants, const PeerEnd& owner, uint32_t ordinal, PeerWhat what, bool is_granted) {
  bool& remembered = grants.memory[owner.context->ordinal()][ordinal];
  if (what == PeerWhat::kPool) {
    Grants::Pool& pool = grants.pools[owner.context->ordinal()][ordinal];
    if (pool.users != 0) {
      pool.is_for_users_only = !is_granted;
      return {};
    }
    Result<bool> is_open = IsPoolOpen(owner, ordinal);
    MR_TRY(is_open.status());
    if (is_open.value() == is_granted) return {};
    if (!is_granted) return SetPoolAccess(owner, ordinal, false);
  } else {
    if (is_granted && remembered) return {};
    if (!is_granted) {
      Result<bool> is_active = IsActive(ordinal);
      MR_TRY(is_active.status());
      if (!is_active.value()) return {};
    }
  }
  Result<PeerEnd> peer = FindPeer(ordinal);
  MR_TRY(peer.status());
  const auto set = [&](bool value) {
    return what == PeerWhat::kPool ? SetPoolAccess(owner, ordinal, value)
                                   : SetMemoryAccess(owner, *peer.value().context, value);
  };
  MR_TRY(set(is_granted));
  if (what == PeerWhat::kMemory) remembered = is_granted;
  if (!is_granted) return {};
  Result<PeerRoute> route = ProbePeers(owner, peer.value());
  if (route.ok() && route.value() == PeerRoute::kDirect) return {};
  if (what == PeerWhat::kMemory) remembered = false;
  MR_TRY(set(false));
  MR_TRY(route.status());
  return {StatusCode::kUnsupported, "accessing memory of a peer whose direct route gives wrong bytes"};
}

}  // namespace

Result<hal::PeerState> QueryPeer(const PeerEnd& owner, uint32_t peer, PeerWhat what) {
  if (owner.context->ordinal() == peer) return hal::PeerState{true, true};
  MR_TRY(owner.context->Alive());
  Result<bool> can = CanReach(owner, peer, what);
  MR_TRY(can.status());
  hal::PeerState state = {can.value(), false};
  if (!state.can_grant) return state;
  Grants& grants = GetGrants();
  const std::lock_guard lock(grants.mutex);
  if (what == PeerWhat::kMemory) {
    state.is_granted = grants.memory[owner.context->ordinal()][peer];
    return state;
  }
  Result<bool> is_open = IsPoolOpen(owner, peer);
  MR_TRY(is_open.status());
  state.is_granted = is_open.value() && !grants.pools[owner.context->ordinal()][peer].is_for_users_only;
  return state;
}

Status SetPeer(const PeerEnd& owner, uint32_t peer, PeerWhat what, bool is_granted) {
  if (owner.context->ordinal() == peer) return {};
  MR_TRY(owner.context->Alive());
  Result<bool> can = CanReach(owner, peer, what);
  MR_TRY(can.status());
  if (!can.value()) {
    if (!is_granted) return {};
    return {StatusCode::kUnsupported, "accessing memory of a device that is not a peer"};
  }
  Grants& grants = GetGrants();
  const std::lock_guard lock(grants.mutex);
  return Set(grants, owner, peer, what, is_granted);
}

Result<std::unique_ptr<PoolAccess>> PoolAccess::Take(const PeerEnd& owner, const std::shared_ptr<Context>& peer) {
  const uint32_t ordinal = peer->ordinal();
  MR_TRY(owner.context->Alive());
  Result<bool> can = CanReach(owner, ordinal, PeerWhat::kPool);
  MR_TRY(can.status());
  if (!can.value()) return Status(StatusCode::kUnsupported, "accessing memory of a device that is not a peer");
  Grants& grants = GetGrants();
  const std::lock_guard lock(grants.mutex);
  Grants::Pool& pool = grants.pools[owner.context->ordinal()][ordinal];
  if (pool.users == 0) {
    Result<bool> is_open = IsPoolOpen(owner, ordinal);
    MR_TRY(is_open.status());
    if (!is_open.value()) MR_TRY(Set(grants, owner, ordinal, PeerWhat::kPool, true));
    pool.is_for_users_only = !is_open.value();
  }
  ++pool.users;
  return std::unique_ptr<PoolAccess>(new PoolAccess(owner, peer));
}

PoolAccess::~PoolAccess() {
  Grants& grants = GetGrants();
  const std::lock_guard lock(grants.mutex);
  Grants::Pool& pool = grants.pools[owner_.context->ordinal()][peer_->ordinal()];
  if (--pool.users != 0 || !pool.is_for_users_only) return;
  pool.is_for_users_only = false;
  // Fails only if the device is lost, with its pool.
  if (owner_.context->Alive().ok()) static_cast<void>(SetPoolAccess(owner_, peer_->ordinal(), false));
}

}  // namespace millrace::cuda
