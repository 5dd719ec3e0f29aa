// Sends data between two devices and compares it, because broken peer transfers report success.
#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "cuda/context_scope.h"
#include "cuda/copies_through_host.h"
#include "cuda/driver_errors.h"
#include "cuda/memory.h"
#include "cuda/own_streams.h"
#include "cuda/peers.h"

namespace millrace::cuda {

using protocol::PeerRoute;

namespace {

/// More than one packet, page and channel of any interconnect.
constexpr uint64_t kProbeBytes = 2 << 20;

/// Memory and a stream on one device, for the duration of a probe.
class Place {
 public:
  Place(const PeerEnd& end, bool is_pooled) : end_(end), is_pooled_(is_pooled) {}

  Status Open() {
    const ContextScope scope(context().handle());
    MR_TRY(context().Check(scope.code(), "making the context current"));
    Result<CUstream> stream = OwnStreams().Take(context(), 0);
    MR_TRY(stream.status());
    stream_ = stream.value();
    Result<std::unique_ptr<Memory>> memory = Memory::Allocate(end_.context, stream_, kProbeBytes, is_pooled_);
    MR_TRY(memory.status());
    memory_ = std::move(memory).value();
    return Finish();
  }

  ~Place() {
    if (stream_ == nullptr || context().is_lost()) return;
    const ContextScope scope(context().handle());
    if (memory_ != nullptr) std::ignore = memory_->Free(stream_);
    OwnStreams().GiveBack(context(), stream_);
  }

  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  /// Copies between this place and page-locked memory, and waits.
  Status Copy(CUdeviceptr dst, CUdeviceptr src) {
    const ContextScope scope(context().handle());
    MR_TRY(context().Check(scope.code(), "making the context current"));
    MR_TRY(context().Check(Cuda().cuMemcpyAsync(dst, src, kProbeBytes, stream_), "copying for a probe"));
    return Finish();
  }

  /// Sends this place's data to the other place, on this one's stream, and waits.
  Status SendTo(Place& other) {
    const ContextScope scope(context().handle());
    MR_TRY(context().Check(scope.code(), "making the context current"));
    CUresult code = Cuda().cuMemcpyPeerAsync(other.address(), other.context().handle(), address(), context().handle(),
                                             kProbeBytes, stream_);
    if (code == CUDA_SUCCESS) code = Synchronize();
    return CheckAmong(context(), {&other.context()}, code, "sending data to a peer");
  }

  [[nodiscard]] CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(memory_->address()); }

 private:
  Status Finish() { return context().Check(Synchronize(), "waiting for a probe"); }
  /// Asked again after a refusal: both sides free their memory then, in which the copy may still run.
  CUresult Synchronize() const {
    return Insist([this] { return Cuda().cuStreamSynchronize(stream_); });
  }
  [[nodiscard]] Context& context() const { return *end_.context; }

  const PeerEnd& end_;
  const bool is_pooled_;
  CUstream stream_ = nullptr;
  std::unique_ptr<Memory> memory_;
};

/// All numbers differ, so that misplaced bytes are detected too.
void Write(std::byte* data, uint64_t seed) {
  for (uint64_t i = 0; i < kProbeBytes / 8; ++i) {
    uint64_t word = (i + 1) * 0x9e3779b97f4a7c15 + seed;
    word ^= word >> 29;
    std::memcpy(data + 8 * i, &word, 8);
  }
}

/// Whether data sent from one place arrives intact at the other.
Result<bool> Arrives(Place& from, Place& to, LockedBlock& host, uint64_t seed) {
  std::byte* const sent = host.data();
  std::byte* const seen = host.data() + kProbeBytes;
  Write(sent, seed);
  std::memset(seen, 0x3c, kProbeBytes);
  MR_TRY(to.Copy(to.address(), reinterpret_cast<CUdeviceptr>(seen)));  // Overwrites earlier correct data.
  MR_TRY(from.Copy(from.address(), reinterpret_cast<CUdeviceptr>(sent)));
  MR_TRY(from.SendTo(to));
  MR_TRY(to.Copy(reinterpret_cast<CUdeviceptr>(seen), to.address()));
  return std::memcmp(sent, seen, kProbeBytes) == 0;
}

Result<bool> IsRight(const PeerEnd& one, const PeerEnd& other, LockedBlock& host, bool is_pooled) {
  Place here(one, is_pooled);
  MR_TRY(here.Open());
  Place there(other, is_pooled);
  MR_TRY(there.Open());
  Result<bool> out = Arrives(here, there, host, 1);
  if (!out.ok() || !out.value()) return out;
  return Arrives(there, here, host, 2);
}

}  // namespace

Result<PeerRoute> ProbePeers(const PeerEnd& one, const PeerEnd& other) {
  if (one.context == other.context) return PeerRoute::kDirect;
  MR_TRY(one.context->Alive());
  Result<std::unique_ptr<LockedBlock>> host = LockedBlock::Allocate(one.context, 2 * kProbeBytes);
  MR_TRY(host.status());
  for (const bool is_pooled : {true, false}) {
    if (is_pooled && (one.pool == nullptr || other.pool == nullptr)) continue;
    Result<bool> is_right = IsRight(one, other, *host.value(), is_pooled);
    if (one.context->is_lost()) return one.context->Alive();
    if (other.context->is_lost()) return Status(StatusCode::kUpstream, "probing a lost peer");
    // A route that fails without a fault counts as broken too.
    if (!is_right.ok() || !is_right.value()) return PeerRoute::kStaged;
  }
  return PeerRoute::kDirect;
}

}  // namespace millrace::cuda
