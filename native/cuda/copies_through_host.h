// Copies between two devices through host memory, for pairs whose direct route corrupts data.
//
// A copy goes in chunks through one page-locked block: device to host, then host to device. The requesting stream
// orders it. The part on another device runs on a hidden stream there, between two events: only a pool's own device, or
// a peer with access, can copy its memory safely.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "cuda/context.h"
#include "cuda/memory.h"

namespace millrace::cuda {

/// Belongs to one stream. Thread: channel, with the stream's context current, or the blocking-calls thread while the
/// channel submits nothing to the stream. Destroyed after the stream's last work.
class CopiesThroughHost {
 public:
  CopiesThroughHost() = default;
  ~CopiesThroughHost();

  CopiesThroughHost(const CopiesThroughHost&) = delete;
  CopiesThroughHost& operator=(const CopiesThroughHost&) = delete;

  struct End {
    CUdeviceptr address;
    const std::shared_ptr<Context>& context;
  };

  /// Queues a copy between host memory and memory of another device, on that device.
  Status CopyThere(const std::shared_ptr<Context>& own, CUstream stream, const std::shared_ptr<Context>& there,
                   CUdeviceptr dst, CUdeviceptr src, uint64_t bytes);

  /// Whether a block exists that is large enough for the copy.
  [[nodiscard]] bool HasRoom(uint64_t bytes) const;
  /// Allocates the block, of 4 to 64 MiB: about 0.3 ms per MiB. Thread: blocking calls.
  Status MakeRoom(const std::shared_ptr<Context>& own, uint64_t bytes);

  /// Queues a copy on `stream` of `own`; call only if HasRoom. Parts queued before a failure stay in the stream.
  /// kUpstream: the other device is lost.
  Status Copy(const std::shared_ptr<Context>& own, CUstream stream, End dst, End src, uint64_t bytes);

 private:
  struct Leg {
    std::shared_ptr<Context> context;
    CUstream stream;
    CUevent turn;  // Recorded on the requesting stream before the leg.
    CUevent done;  // Recorded on the leg's stream after it.
  };

  Result<Leg*> LegOf(Context& own, const std::shared_ptr<Context>& context);
  void Dismantle(Leg& leg);
  Status Step(Context& own, CUstream stream, Leg* leg, CUdeviceptr dst, CUdeviceptr src, uint64_t bytes);

  std::shared_ptr<Context> own_;
  std::vector<std::unique_ptr<Leg>> legs_;
  std::vector<std::unique_ptr<LockedBlock>> blocks_;  // The last is in use; the others were too small.
};

/// The Status of a call in `own` that involves other devices. A fault is attributed to the device that has it; another
/// device's fault is kUpstream here. With `own` current.
Status CheckAmong(Context& own, std::initializer_list<Context*> others, CUresult code, const char* note);

}  // namespace millrace::cuda
