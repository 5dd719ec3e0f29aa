// Copies between two devices through host memory, for pairs whose direct route gives wrong bytes.
//
// A copy goes chunk by chunk through one page-locked block: down from the source, up to the destination. It is ordered
// on the stream that asked for it alone. A leg of another device runs on a hidden stream there, between two events:
// memory of a pool is copied safely only by its own device, or by one that was let in.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "cuda/context.h"
#include "cuda/memory.h"

namespace millrace::cuda {

/// One stream's. Thread: channel, with the stream's context current, or the pump while the channel gives the stream
/// nothing. Destroyed after the stream's last work.
class Bounce {
 public:
  Bounce() = default;
  ~Bounce();

  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;

  struct End {
    CUdeviceptr address;
    const std::shared_ptr<Context>& context;
  };

  /// Queues a copy between host memory and memory of another device, on that device.
  Status CopyThere(const std::shared_ptr<Context>& own, CUstream stream, const std::shared_ptr<Context>& there,
                   CUdeviceptr dst, CUdeviceptr src, uint64_t bytes);

  /// Whether there is a block that a copy of so many bytes can go through.
  [[nodiscard]] bool HasRoom(uint64_t bytes) const;
  /// Makes it: some 0.3 ms a MiB, of 4 to 64 MiB. Thread: pump.
  Status MakeRoom(const std::shared_ptr<Context>& own, uint64_t bytes);

  /// Queues a copy on `stream` of `own`, for which there is room. What was queued before a failure is part of the
  /// stream. kUpstream: the other device is lost.
  Status Copy(const std::shared_ptr<Context>& own, CUstream stream, End dst, End src, uint64_t bytes);

 private:
  struct Leg {
    std::shared_ptr<Context> context;
    CUstream stream;
    CUevent turn;  // On the stream that asked: the leg may go.
    CUevent done;  // On the leg's stream.
  };

  Result<Leg*> LegOf(Context& own, const std::shared_ptr<Context>& context);
  void Dismantle(Leg& leg);
  Status Step(Context& own, CUstream stream, Leg* leg, CUdeviceptr dst, CUdeviceptr src, uint64_t bytes);

  std::shared_ptr<Context> own_;
  std::vector<std::unique_ptr<Leg>> legs_;
  std::vector<std::unique_ptr<LockedBlock>> blocks_;  // The last is in use, those before it were too small.
};

/// What a call in `own`, which other devices have a part in, came to. A fault is blamed on the device that has it; that
/// of another is kUpstream here. With `own` current.
Status CheckAmong(Context& own, std::initializer_list<Context*> others, CUresult code, const char* note);

}  // namespace millrace::cuda
