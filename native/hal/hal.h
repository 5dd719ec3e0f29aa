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
//     word, both before its ticket counts as completed. The device lives on. A copy that was not made because its host
//     memory was withdrawn reports in the same way.
//     A backend that runs kernels on threads of this process (the CPU) calls `ProgressSink::Failed` for a launch whose
//     kernel could not go on: it overflowed its stack, used memory that is not mapped, or reached a trap.
//  9. A device fault is *lost*: `Resolve` and every submitting call return kDeviceLost from then on.
// 10. Objects own what they depend on (shared ownership inside them), so destruction order needs no discipline. The
//     channel drains a stream before it destroys it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hal/caps.h"
#include "hal/status.h"
#include "protocol/protocol.gen.h"

namespace millrace::hal {

using Ticket = uint64_t;

/// A launch whose kernel could not go on.
struct KernelFailure {
  Status status;  // kLaunchFailed; or kDeviceLost, when the device is not to be trusted any more.
  uint32_t kernel = 0;
  protocol::FaultSlot report{};
  /// As the LaunchRequest had them. Valid during the call only.
  std::span<const uint64_t> outputs;
};

/// Told when a stream advanced. Thread: any. Must not block and must not call back into the stream's device.
class ProgressSink {
 public:
  virtual void Progress(Ticket completed) noexcept = 0;
  /// Before `ticket` counts as completed.
  virtual void Failed(Ticket ticket, const KernelFailure& failure) noexcept = 0;

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

/// What a launch of a built kernel may ask for.
struct KernelLimits {
  /// Threads of a block: fewer than the device's where each takes many registers, or where the text says so.
  uint32_t max_threads_per_block = 0;
  /// Dynamic shared memory of a block: what the kernel's own leaves of the device's.
  uint32_t max_dynamic_shared_bytes = 0;
  /// Blocks of a cooperative launch, however small they are. 0: the device makes none.
  uint32_t max_blocks_together = 0;
  /// Blocks of one warp, of two, and so on that one multiprocessor runs at once, without dynamic shared memory. Empty
  /// where a block's size decides nothing.
  std::vector<uint32_t> blocks_at_once;
};

/// A function of a loaded module, which it keeps loaded.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Thread: any.
  [[nodiscard]] virtual const KernelLimits& limits() const = 0;
  /// Blocks of a cooperative launch of this shape, at most: cuOccupancyMaxActiveBlocksPerMultiprocessor times the
  /// multiprocessors. Thread: channel.
  [[nodiscard]] virtual Result<uint64_t> BlocksTogether(uint32_t block_threads, uint32_t shared_bytes) = 0;
};

/// A loaded image: kernels, and the variables that they share. However often an image is loaded, and on however many
/// devices, each module has variables of its own, which begin as the text says. Thread: control.
class Module {
 public:
  virtual ~Module() = default;
  /// `is_bounded`: the text has no loop and waits for nothing, so a small grid of it may run on the channel's thread.
  /// `is_launching`: kernels of the text launch kernels. On the CPU device launches are checked then: what they refuse
  /// is reported.
  [[nodiscard]] virtual Result<std::shared_ptr<Kernel>> FindKernel(const std::string& entry, bool is_bounded,
                                                                   bool is_launching) = 0;
  /// A variable by its name in the text (`scale`, `physics::gravity`), as memory that goes with the module, which it
  /// keeps loaded. kArgument when there is none; kUnsupported when it is const, where the backend knows that.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> FindVariable(const std::string& name) = 0;
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
  /// All blocks run at once and may wait for each other. There are no more than Kernel::BlocksTogether.
  bool is_cooperative = false;
  /// The runtime's names of the kernel and of what it writes, for ProgressSink::Failed. Valid during the call only.
  uint32_t kernel_id = 0;
  std::span<const uint64_t> outputs;
};

struct StreamRequest {
  int32_t priority = 0;  // Within the device's range.
  /// A driver stream that somebody else made: used and never destroyed. 0 names the driver's own default stream.
  std::optional<uint64_t> foreign;
  protocol::TimelineSlot* slot = nullptr;
  ProgressSink* sink = nullptr;  // Outlives the stream.
};

/// A kernel, by its image and its name there.
struct KernelRequest {
  std::span<const std::byte> image;
  std::string entry;
  bool is_bounded = false;
  /// Kernels of the image launch kernels. On the CPU device launches are checked then: what they refuse is reported.
  bool is_launching = false;
};

/// One axis of a strided copy or fill, in bytes; the fastest axis comes last. At most kMaxRank axes, none of extent 0.
struct StridedAxis {
  uint64_t extent = 0;
  int64_t dst_stride = 0;
  int64_t src_stride = 0;
};

/// A place in a stream that the device stamps with its clock, or that other processes can wait for.
/// Made and destroyed by the channel; recorded on streams of its own device.
class EventHandle {
 public:
  virtual ~EventHandle() = default;
};

/// What another process opens an event or an allocation by: cuIpcGetEventHandle, cuIpcGetMemHandle.
using IpcHandle = std::array<std::byte, protocol::kIpcHandleBytes>;

/// FaultSlot::state of a report that is complete.
inline constexpr uint32_t kFaultWritten = 2;

/// Whether registered host memory may still be touched. Its owner may end, and take it along, while work is queued that
/// names it. Thread: any.
class HostLease {
 public:
  /// For good.
  void Withdraw() { is_withdrawn_.store(true, std::memory_order_release); }
  [[nodiscard]] bool IsWithdrawn() const { return is_withdrawn_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_withdrawn_{false};
};

/// The ends of a copy that are host memory. Work that has not begun leaves withdrawn memory alone; of a copy that has,
/// what is left. Pages that a driver locked stay with the driver, so only devices that reach host memory by themselves
/// have something to look at.
struct HostEnds {
  std::shared_ptr<const HostLease> dst;  // Null: memory of a device.
  std::shared_ptr<const HostLease> src;
  /// Where rule 8 reports a copy that was not made; null where nobody would hear of it.
  protocol::FaultSlot* report = nullptr;

  [[nodiscard]] bool HasAny() const { return dst != nullptr || src != nullptr; }
  [[nodiscard]] bool IsWithdrawn() const {
    return (dst != nullptr && dst->IsWithdrawn()) || (src != nullptr && src->IsWithdrawn());
  }
};

class Device;

/// A copy one end of which, or both, belongs to another device of the same backend. Ranges do not overlap.
struct PeerCopy {
  std::byte* dst = nullptr;
  Device* dst_device = nullptr;
  const std::byte* src = nullptr;
  Device* src_device = nullptr;
  uint64_t bytes = 0;
  protocol::PeerRoute route = protocol::PeerRoute::kDirect;
};

class Stream {
 public:
  virtual ~Stream() = default;

  virtual Status Launch(Ticket ticket, const LaunchRequest& request) = 0;
  /// Either side is device memory of this device or registered host memory; ranges of one call do not overlap. Where
  /// one side is of the host, the other may be memory of another device of this backend, as in CopyPeer.
  virtual Status Copy(Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes,
                      const HostEnds& host = {}) = 0;
  /// Between devices of this backend. The devices are open until the call returns, the memory until the ticket is
  /// completed; the channel sees to both.
  virtual Status CopyPeer(Ticket ticket, const PeerCopy& copy) = 0;
  /// Whether the stream has the staging memory for a CopyPeer of so many bytes by the staged route. Thread: channel.
  [[nodiscard]] virtual bool HasStaging(uint64_t) const { return true; }
  /// Makes that memory, before the first such copy and before one that needs more. The stream is given nothing
  /// meanwhile. Thread: pump. Blocks.
  virtual Status MakeStaging(uint64_t) { return {}; }
  /// Elements of 1, 2, 4 or 8 bytes between two places of this device's memory, which no element shares.
  virtual Status CopyStrided(Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                             std::span<const StridedAxis> axes) = 0;
  /// `dst` is memory of this device.
  virtual Status FillStrided(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                             std::span<const StridedAxis> axes) = 0;
  /// One end is device memory, the other host memory that is not page-locked: through staging memory of the backend.
  /// Returns when the bytes are there and takes no ticket. Everything the stream was given before is complete, and it
  /// is given nothing meanwhile. Thread: pump. Blocks.
  virtual Status CopyPageable(std::byte* dst, const std::byte* src, uint64_t bytes) = 0;
  /// `dst` is memory of this device, aligned to `element_bytes`: 1, 2, 4 or 8.
  virtual Status Fill(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) = 0;
  /// Later work runs after `other`, a stream of this backend that has already accepted `until`, completed it. `other`
  /// may belong to another device and another channel thread, so its bookkeeping for this call is locked. kUpstream:
  /// that other device is lost.
  virtual Status Wait(Ticket ticket, Stream& other, Ticket until) = 0;
  /// Stamps or records `event` here. Of an interprocess event: again, any number of times.
  virtual Status Record(Ticket ticket, EventHandle& event_handle) = 0;
  /// Later work runs after the last record of an interprocess event, this process's or another's.
  virtual Status WaitEvent(Ticket ticket, EventHandle& event_handle) = 0;
  virtual Status Nop(Ticket ticket) = 0;
  /// Memory that is valid for work of this stream after `ticket`. kOutOfMemory when there is none now.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> Allocate(Ticket ticket, uint64_t bytes) = 0;
  /// Gives memory back after earlier work of this stream.
  virtual Status Free(Ticket ticket, std::unique_ptr<Memory> memory) = 0;

  /// Makes the timeline word reach the last accepted ticket by itself. Called when the stream's backlog empties, every
  /// kTimelineWriteEvery records, when somebody asks, and now and then while work is unfinished: a backend that has too
  /// much on its way may do nothing this time, and one that reports each record anyway never does.
  virtual Status Signal() = 0;

  /// The last completed ticket known without asking the device. Thread: any.
  [[nodiscard]] virtual Ticket Completed() const noexcept = 0;
  /// As Completed(), after asking the device about `wanted`, which it has accepted, unless it will write the word for
  /// it by itself. Thread: the watcher, or the channel.
  [[nodiscard]] virtual Result<Ticket> Resolve(Ticket wanted) = 0;
  /// Asks the device whether the stream's work can still end: kDeviceLost when it faulted. Thread: channel.
  virtual Status Check() = 0;
  /// Whether it has not come to the end of what it was given, `accepted` the last of it; on a device that was given up,
  /// whether anything of it still runs. Asks no device. Thread: any.
  [[nodiscard]] virtual bool IsBusy(Ticket accepted) const { return Completed() < accepted; }
  /// The driver's own handle, or a number that no other stream of the process has. Thread: any.
  [[nodiscard]] virtual uint64_t NativeHandle() const = 0;
};

/// Of a device's stream-ordered pool, in bytes. high-water values count from the last ResetHighWater. What is kept of
/// freed interprocess memory counts as reserved; its own high-water value is added to the pool's, so that the sum is
/// never too low.
struct PoolStats {
  uint64_t total = 0;
  uint64_t free = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
  uint64_t reserved = 0;
  uint64_t reserved_high = 0;
};

struct PeerState {
  bool can_grant = false;
  bool is_granted = false;
};

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  [[nodiscard]] virtual bool NeedsPolling() const = 0;
  /// Makes the calling thread the device's channel thread (a GPU backend makes its context current).
  virtual Status BindChannelThread() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Stream>> CreateStream(const StreamRequest& request) = 0;

  /// `image` is a cubin, PTX, or, on the CPU device, the path of a shared object. Thread: control. May take long.
  [[nodiscard]] virtual Result<std::shared_ptr<Module>> LoadModule(std::span<const std::byte> image) = 0;
  /// A kernel of a module that nobody else has.
  [[nodiscard]] Result<std::shared_ptr<Kernel>> LoadKernel(const KernelRequest& request) {
    Result<std::shared_ptr<Module>> module = LoadModule(request.image);
    MR_TRY(module.status());
    return module.value()->FindKernel(request.entry, request.is_bounded, request.is_launching);
  }
  /// Page-locks host memory for this device, or lets go of it. Unregister before the memory is released, always.
  /// Thread: control. May take long.
  virtual Status RegisterHost(std::span<std::byte> range) = 0;
  virtual Status UnregisterHost(std::span<std::byte> range) = 0;
  /// Memory for fault reports, which kernels and the host both see at the same address. Thread: control or channel.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> AllocateFaultSlots(uint32_t count) = 0;
  /// Bytes free now, for error messages. Thread: channel.
  [[nodiscard]] virtual uint64_t FreeBytes() const = 0;

  /// False where copies reach all host memory at the same price, so that no pump is needed.
  [[nodiscard]] virtual bool NeedsLockedMemory() const = 0;

  // Events. Thread: channel, or control where it says so.
  [[nodiscard]] virtual Result<std::unique_ptr<EventHandle>> CreateEvent(protocol::EventKind kind) = 0;
  /// Milliseconds from `start` to `end`, two timestamps that are complete; negative when `end` came first.
  [[nodiscard]] virtual Result<double> Elapsed(const EventHandle& start, const EventHandle& end) = 0;

  // Other processes. kUnsupported where the device has none of it. Thread: control.
  [[nodiscard]] virtual Result<IpcHandle> ExportEvent(EventHandle& event_handle) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<EventHandle>> OpenEvent(const IpcHandle& handle) = 0;
  /// Memory that ExportMemory takes: an allocation of its own, not of the pool, or a freed one that was never exported.
  /// Thread: pump. May block.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> AllocateInterprocess(uint64_t bytes) = 0;
  /// Thread: channel, which knows that nobody frees the memory meanwhile.
  [[nodiscard]] virtual Result<IpcHandle> ExportMemory(const Memory& memory) = 0;
  /// Memory of another process; destroying it closes the mapping. `Stream::Free` takes it too.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> OpenMemory(const IpcHandle& handle, uint64_t bytes) = 0;

  /// Bytes of such memory that were freed and are still with the device, because giving them back would wait for its
  /// work. Thread: channel.
  [[nodiscard]] virtual uint64_t KeptBytes() const { return 0; }
  /// Gives them back as far as their last use is over, before an allocation fails. Thread: pump. Blocks.
  virtual void GiveBackKept() {}

  // The pool. Thread: control.
  [[nodiscard]] virtual Result<PoolStats> PoolUse() = 0;
  /// Bytes the pool keeps for itself when nothing uses them; 0 gives them back at the next occasion.
  virtual Status SetReleaseThreshold(uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<uint64_t> ReleaseThreshold() = 0;
  /// Gives unused memory back at once, down to `keep_bytes`. May wait for the device where interprocess memory is kept.
  virtual Status Trim(uint64_t keep_bytes) = 0;
  virtual Status ResetHighWater() = 0;

  // Peers, by the ordinal of a device of this backend that may not be open. This device's memory, the peer reaches it.
  // Itself: true, and nothing to set. Thread: control.
  [[nodiscard]] virtual Result<PeerState> Peer(uint32_t ordinal, protocol::PeerWhat what) = 0;
  virtual Status SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) = 0;
  /// Sends data both ways between this device and an open one and compares it: broken peer transfers report success.
  /// Thread: control. Blocks.
  [[nodiscard]] virtual Result<protocol::PeerRoute> ProbePeer(Device& other) = 0;

  /// Nobody waits for its work any more: what has not begun is dropped where the backend can, what runs is stopped
  /// where it can be. Tickets of dropped work never complete. Nothing is submitted afterwards. Called again, it looks
  /// again: what another device was promised may be wanted no more. Thread: channel.
  virtual void Cancel() {}
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
