// The contract between the runtime and a backend. Two implementations stand beside it, cuda/ and cpu/, with the same
// file names; the runtime knows neither.
//
// A device's work reaches its backend from one native thread, the channel. The channel reads records, resolves handles,
// decides what may run, and calls the functions below; the backend makes the work happen in stream order and says how
// far each stream has come. Progress is one number a stream, the ticket of the last completed record, and it only
// grows.
//
// Rules. Tests cite them by number.
//  1. Callers validate, backends trust. A backend returns only what the caller could not foresee: out of memory,
//     unsupported, launch rejected, device lost. What it re-checks is an MR_CHECK.
//  2. Calls on one device and its streams come from its channel thread. The exceptions say "Thread: any" or name
//     their thread.
//  3. Every submitting call of a Stream takes the record's ticket. Tickets of a stream arrive in order and without
//     gaps. If the call succeeds, `Completed()` reaches the ticket after all earlier work of the stream. If it fails,
//     nothing was queued and the ticket is still open: the channel closes it with `Nop(ticket)`.
//  4. `Completed()` never decreases, and never passes a ticket whose memory effects other threads cannot see yet.
//  5. A backend whose work ends on threads of its own (the CPU) calls `ProgressSink::Progress` after each advance. One
//     whose work ends elsewhere (a GPU) returns true from `Device::NeedsPolling()`; the process's watcher then calls
//     `Stream::Resolve` while somebody waits.
//  6. A sink is called with no lock held, from any thread, and never blocks.
//  7. No call blocks for the device. Those that may take long (opening, building, page-locking, closing) come from the
//     device's control thread and say so.
//  8. A checked launch that leaves an array's bounds writes its FaultSlot and then sets the timeline slot's `fault`
//     word, both before its ticket counts as completed. The device lives on.
//  9. A device fault is *lost*: `Resolve` and every submitting call return kDeviceLost from then on.
// 10. Objects own what they depend on (shared ownership inside them), so destruction order needs no discipline. The
//     channel drains a stream before it destroys it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hal/caps.h"
#include "hal/status.h"
#include "protocol/protocol.gen.h"

namespace millrace::hal {

using Ticket = uint64_t;

/// Told when a stream advanced. Thread: any. Must not block and must not call back into the stream's device.
class ProgressSink {
 public:
  virtual void Progress(Ticket completed) noexcept = 0;

 protected:
  ~ProgressSink() = default;
};

/// Device memory. Destroyed by the channel after `Stream::Free`, or with the device.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::byte* address() const = 0;
  [[nodiscard]] virtual uint64_t bytes() const = 0;
};

/// A function of a built module, kept loaded by whoever holds it.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

struct LaunchRequest {
  Kernel* kernel = nullptr;
  Dim3 grid;
  Dim3 block;
  uint32_t shared_bytes = 0;
  /// One pointer to each parameter's value, as cuLaunchKernel takes them. Valid during the call only.
  std::span<void* const> params;
};

struct StreamRequest {
  int32_t priority = 0;  // Within the device's range.
  protocol::TimelineSlot* slot = nullptr;
  ProgressSink* sink = nullptr;  // Outlives the stream.
};

/// Where a kernel's bytes come from. `image` is a cubin, PTX, or, on the CPU device, the path of a shared object.
struct KernelRequest {
  std::span<const std::byte> image;
  std::string entry;
  /// The text has no loop and waits for nothing, so a small grid of it may run on the channel's thread.
  bool is_bounded = false;
};

class Stream {
 public:
  virtual ~Stream() = default;

  virtual Status Launch(Ticket ticket, const LaunchRequest& request) = 0;
  /// Either side is device memory of this device or registered host memory; ranges of one call do not overlap.
  virtual Status Copy(Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes) = 0;
  /// `element_bytes` is 1, 2, 4 or 8; `dst` is aligned to it.
  virtual Status Fill(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) = 0;
  /// Later work runs after `other`, a stream of this backend that has already accepted `until`, completed it. `other`
  /// may belong to another device and another channel thread, so its bookkeeping for this call is locked. kUpstream:
  /// that other device is lost.
  virtual Status Wait(Ticket ticket, Stream& other, Ticket until) = 0;
  virtual Status Nop(Ticket ticket) = 0;
  /// Memory that is valid for work of this stream after `ticket`. kOutOfMemory when there is none now.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> Allocate(Ticket ticket, uint64_t bytes) = 0;
  /// Gives memory back after earlier work of this stream.
  virtual Status Free(Ticket ticket, std::unique_ptr<Memory> memory) = 0;

  /// Makes the timeline word reach the last accepted ticket by itself. Called when the stream's backlog empties, every
  /// kMarkEvery records, and when somebody asks. A backend that reports each record anyway does nothing.
  virtual Status Signal() = 0;

  /// The last completed ticket known without asking the device. Thread: any.
  [[nodiscard]] virtual Ticket Completed() const noexcept = 0;
  /// As Completed(), after asking the device about `wanted`, which it has accepted, unless it will write the word for
  /// it by itself. Thread: the watcher, or the channel.
  [[nodiscard]] virtual Result<Ticket> Resolve(Ticket wanted) = 0;
  /// Asks the device whether the stream's work can still end: kDeviceLost when it faulted. Thread: channel.
  virtual Status Check() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  [[nodiscard]] virtual bool NeedsPolling() const = 0;
  /// Makes the calling thread the device's channel thread (a GPU backend makes its context current).
  virtual Status BindChannelThread() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Stream>> CreateStream(const StreamRequest& request) = 0;

  /// Loads an image and finds a kernel in it. Thread: control. May take long.
  [[nodiscard]] virtual Result<std::shared_ptr<Kernel>> LoadKernel(const KernelRequest& request) = 0;
  /// Page-locks host memory for this device, or lets go of it. Unregister before the memory is released, always.
  /// Thread: control. May take long.
  virtual Status RegisterHost(std::span<std::byte> range) = 0;
  virtual Status UnregisterHost(std::span<std::byte> range) = 0;
  /// Memory for fault reports, which kernels and the host both see at the same address. Thread: control or channel.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> AllocateFaultSlots(uint32_t count) = 0;
  /// Bytes free now, for error messages. Thread: channel.
  [[nodiscard]] virtual uint64_t FreeBytes() const = 0;

  /// Waits for what is queued and gives everything back. Thread: channel, after its last record. May take long.
  virtual void Close() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  /// Thread: any. Cheap after the first call; creates no context.
  [[nodiscard]] virtual BackendReport Enumerate() = 0;
  /// Opens a device. `timeline` is the memory of its slots, which the backend makes visible to the device.
  /// Thread: control. May take long.
  [[nodiscard]] virtual Result<std::unique_ptr<Device>> Open(uint32_t ordinal,
                                                             std::span<protocol::TimelineSlot> timeline) = 0;
};

}  // namespace millrace::hal
