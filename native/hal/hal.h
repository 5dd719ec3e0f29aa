// The contract between the runtime and a backend. The two implementations, cuda/ and cpu/, have the same file names;
// the runtime knows neither.
//
// One native thread per device, the channel, gives work to the backend. It reads records, resolves handles, decides
// what may run, and calls the functions below; the backend runs the work in stream order and reports each stream's
// progress: one number, the ticket of the last completed record, which only grows.
//
// More than 400 lines: the whole contract.
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
//     whose work ends elsewhere (a GPU) returns true from `Device::NeedsPolling()`; the channel then calls
//     `Stream::Query` after work, and `Stream::Resolve` while a thread waits.
//  6. A sink is called with no lock held, from any thread, and never blocks.
//  7. No call blocks for the device. Those that may take long (opening, building, page-locking, closing) come from the
//     device's control thread and say so.
//  8. A checked launch that leaves an array's bounds writes its FaultSlot and then sets the device's `fault`
//     word, both before its ticket counts as completed. The device lives on. A copy that was not made because its host
//     memory was withdrawn reports in the same way.
//     A backend that runs kernels on threads of this process (the CPU) calls `ProgressSink::Failed` for a launch whose
//     kernel could not go on: it overflowed its stack, used memory that is not mapped, or reached a trap.
//  9. A device fault is *lost*: `Resolve` and every submitting call return kDeviceLost from then on.
// 10. Objects own what they depend on (shared ownership inside them), so destruction order needs no discipline. The
//     channel drains a stream before it destroys it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hal/caps.h"
#include "hal/host_lease.h"
#include "hal/launch_params.h"
#include "hal/library_plan.h"
#include "hal/partitions.h"
#include "hal/peer_grants.h"
#include "hal/progress.h"
#include "hal/status.h"
#include "hal/textures.h"
#include "protocol/protocol.gen.h"

namespace millrace::hal {

// Of hal/graph.h.
class Graph;
struct GraphNode;
struct GraphLaunchRequest;

/// Device memory. The channel destroys it after `Stream::Free`, or with the device.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::byte* address() const = 0;
  [[nodiscard]] virtual uint64_t bytes() const = 0;
};

/// Limits of a kernel's launches.
struct KernelLimits {
  /// Threads per block: below the device's limit if registers or launch bounds require it.
  uint32_t max_threads_per_block = 0;
  /// Dynamic shared memory per block: the device's limit minus the kernel's static shared memory.
  uint32_t max_dynamic_shared_bytes = 0;
  /// Most blocks of a cooperative launch, for the smallest blocks. 0: the device supports none.
  uint32_t max_cooperative_blocks = 0;
  /// Resident blocks per multiprocessor for blocks of one warp, two warps, and so on, without dynamic shared memory.
  /// Empty if the block size does not matter.
  std::vector<uint32_t> blocks_at_once;
};

/// A function of a loaded module, which it keeps loaded.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Thread: any.
  [[nodiscard]] virtual const KernelLimits& limits() const = 0;
  /// Most blocks of a cooperative launch of this shape: cuOccupancyMaxActiveBlocksPerMultiprocessor times the number of
  /// multiprocessors. Thread: channel.
  [[nodiscard]] virtual Result<uint64_t> MaxCooperativeBlocks(uint32_t block_threads, uint32_t shared_bytes) = 0;
  /// Whether it is a library's call (LoadPlan), for the backend that made it.
  [[nodiscard]] virtual bool IsOfLibrary() const { return false; }
  /// Whether it accesses memory of other devices from its own, which they must have granted.
  [[nodiscard]] virtual bool NeedsGrants() const { return true; }
};

/// A loaded image: kernels, and the variables that they share. Each module has its own variables, initialised as in the
/// source, even if an image is loaded several times or on several devices. Thread: control.
class Module {
 public:
  virtual ~Module() = default;
  /// `is_bounded`: the source has no loop and no wait, so a small grid may run on the channel's thread. `is_launching`:
  /// its kernels launch kernels. The CPU device then checks those launches, and reports the ones that it refuses.
  [[nodiscard]] virtual Result<std::shared_ptr<Kernel>> FindKernel(const std::string& entry, bool is_bounded,
                                                                   bool is_launching) = 0;
  /// A variable by its name in the source (`scale`, `physics::gravity`). The memory keeps the module loaded. kArgument
  /// if there is none; kUnsupported if it is const, as far as the backend knows.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> FindVariable(const std::string& name) = 0;
};

struct LaunchRequest {
  Kernel* kernel = nullptr;
  Dim3 grid;
  Dim3 block;
  uint32_t shared_bytes = 0;
  /// Pointers to the parameter values, as for cuLaunchKernel. Valid during the call only.
  std::span<void* const> params;
  /// All blocks are resident and may wait for each other. At most Kernel::MaxCooperativeBlocks.
  bool is_cooperative = false;
  /// The runtime's number of the kernel, for ProgressSink::Failed.
  uint32_t kernel_id = 0;
  /// Those of `params` that are by value, in their order. The others have at most a word. Valid during the call only.
  std::span<const WideParam> wide;
};

struct StreamRequest {
  int32_t priority = 0;    // Within the device's range.
  uint32_t partition = 0;  // The id of a partition; 0: the whole device.
  /// A driver stream that the caller wraps: it is never destroyed. 0 is the driver's default stream.
  std::optional<uint64_t> foreign;
  protocol::TimelineSlot* slot = nullptr;
  ProgressSink* sink = nullptr;  // Outlives the stream.
};

/// One axis of a strided copy or fill, in bytes; the fastest axis is last. At most kMaxRank axes, none of extent 0.
struct StridedAxis {
  uint64_t extent = 0;
  int64_t dst_stride = 0;
  int64_t src_stride = 0;
};

/// An event with a timestamp, or one that other processes can wait for. The channel creates and destroys it, and
/// records it on streams of its device.
class EventHandle {
 public:
  virtual ~EventHandle() = default;
};

/// The handle by which another process opens an event or an allocation: cuIpcGetEventHandle, cuIpcGetMemHandle.
using IpcHandle = std::array<std::byte, protocol::kIpcHandleBytes>;

/// FaultSlot::state of a complete report.
inline constexpr uint32_t kFaultWritten = 2;

class Device;

/// A copy with one or both ends on another device of the same backend. The ranges do not overlap.
struct PeerCopy {
  std::byte* dst = nullptr;
  Device* dst_device = nullptr;
  const std::byte* src = nullptr;
  Device* src_device = nullptr;
  uint64_t bytes = 0;
  protocol::PeerRoute route = protocol::PeerRoute::kDirect;
};

/// One copy of a batch. As in Stream::Copy, without memory of other devices.
struct BatchedCopy {
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  uint64_t bytes = 0;
  HostLeases host;
};

class Stream {
 public:
  virtual ~Stream() = default;

  virtual Status Launch(Ticket ticket, const LaunchRequest& request) = 0;
  /// Runs all nodes of a graph that BuildGraph of this stream's device made. Takes time and memory for the patches, not
  /// for the nodes. The rules are in hal/graph.h.
  virtual Status LaunchGraph(Ticket ticket, const GraphLaunchRequest& request) = 0;
  /// Does in advance what the first launch of a graph would do besides running the nodes. By default there is nothing.
  virtual Status UploadGraph(Ticket ticket, Graph&) { return Nop(ticket); }
  /// Either side is device memory of this device or registered host memory; the ranges do not overlap. If one side is
  /// host memory, the other may belong to another device of this backend, as in CopyPeer.
  virtual Status Copy(Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes,
                      const HostLeases& host = {}) = 0;
  /// Several copies in any order. What one of them writes, no other one reads or writes. There is at least one.
  virtual Status CopyBatch(Ticket ticket, std::span<const BatchedCopy> copies) = 0;
  /// Between devices of this backend. The channel keeps the devices open until the call returns, and the memory until
  /// the ticket completes.
  virtual Status CopyPeer(Ticket ticket, const PeerCopy& copy) = 0;
  /// Whether the stream has enough staging memory for a staged CopyPeer of this size. Thread: channel.
  [[nodiscard]] virtual bool HasStaging(uint64_t) const { return true; }
  /// Allocates that memory, before the first such copy and before one that needs more. The stream receives no work
  /// meanwhile. Thread: blocking calls. Blocks.
  virtual Status MakeStaging(uint64_t) { return {}; }
  /// Elements of 1, 2, 4 or 8 bytes between two places of this device's memory that do not overlap.
  virtual Status CopyStrided(Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                             std::span<const StridedAxis> axes) = 0;
  /// Between the memory of a texture and linear memory of this device.
  virtual Status CopyArray(Ticket, const ArrayCopy&) { return {StatusCode::kUnsupported, "textures"}; }
  /// `dst` is memory of this device.
  virtual Status FillStrided(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                             std::span<const StridedAxis> axes) = 0;
  /// Copies between device memory and pageable host memory, through the backend's staging memory. Returns when the copy
  /// is complete and takes no ticket. The stream's earlier work is complete, and it receives no work meanwhile. Thread:
  /// blocking calls. Blocks.
  virtual Status CopyPageable(std::byte* dst, const std::byte* src, uint64_t bytes) = 0;
  /// `dst` is memory of this device, aligned to `element_bytes`: 1, 2, 4 or 8.
  virtual Status Fill(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) = 0;
  /// Later work runs after `other`, a stream of this backend that has accepted `until`, completes it. `other` may
  /// belong to another device and channel thread, so this call locks its tables. kUpstream: the other device is lost.
  virtual Status Wait(Ticket ticket, Stream& other, Ticket until) = 0;
  /// Records `event_handle` on this stream. An interprocess event can be recorded any number of times.
  virtual Status Record(Ticket ticket, EventHandle& event_handle) = 0;
  /// Later work runs after the last record of an interprocess event, by this process or another.
  virtual Status WaitEvent(Ticket ticket, EventHandle& event_handle) = 0;
  virtual Status Nop(Ticket ticket) = 0;
  /// Memory that is valid for work of this stream after `ticket`. kOutOfMemory when none is free now.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> Allocate(Ticket ticket, uint64_t bytes) = 0;
  /// Frees memory after earlier work of this stream.
  virtual Status Free(Ticket ticket, std::unique_ptr<Memory> memory) = 0;

  /// Makes the timeline word reach the last accepted ticket. Called when the stream's backlog empties (without
  /// a waiter some microseconds later), every kTimelineWriteEvery records, and periodically while work is unfinished. A
  /// backend with too many writes in flight, or whose writes would hold up copies, may skip a call; one that reports
  /// every record ignores all.
  virtual Status Signal() = 0;
  /// Asks the device how far the stream has come, for Completed(), unless the word says it soon. Only for a device that
  /// NeedsPolling.
  virtual Status Query() { return {}; }

  /// The last completed ticket known without a query of the device. Thread: any.
  [[nodiscard]] virtual Ticket Completed() const noexcept = 0;
  /// Like Completed(), after a query of the device about `wanted`, which it has accepted; without a query if the device
  /// will write that word itself. Thread: the channel, or one that closes another.
  [[nodiscard]] virtual Result<Ticket> Resolve(Ticket wanted) = 0;
  /// Tells the sink, if it wants times and was not told, of the tickets that are known to be completed.
  /// Thread: channel.
  virtual void TellTimes() {}
  /// Asks the device whether the stream can still make progress: kDeviceLost after a fault. Thread: channel.
  virtual Status Check() = 0;
  /// Whether the stream has unfinished work up to `accepted`, its last ticket; on a cancelled device, whether any of it
  /// still runs. Does not query the device. Thread: any.
  [[nodiscard]] virtual bool IsBusy(Ticket accepted) const { return Completed() < accepted; }
  /// The driver's handle, or a number that is unique among the process's streams. Thread: any.
  [[nodiscard]] virtual uint64_t NativeHandle() const = 0;
};

/// Use of a device's stream-ordered pool, in bytes. High-water values count from the last ResetHighWater. Kept memory
/// that was freed by interprocess use counts as reserved; its high-water value is added to the pool's, so the sum may
/// be too high.
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

/// Calls of the driver that other code makes now and that run later, in launches of graphs.
class CallCapture {
 public:
  virtual ~CallCapture() = default;
  /// The driver's stream whose calls are listed and do not run.
  [[nodiscard]] virtual uint64_t stream() const = 0;
  /// What was called, as a kernel of a graph; the driver's error if a call could not be listed. Thread: as at the
  /// begin.
  [[nodiscard]] virtual Result<std::shared_ptr<Kernel>> End() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  [[nodiscard]] virtual bool NeedsPolling() const = 0;
  /// Makes the calling thread the device's channel thread (a GPU backend makes its context current).
  virtual Status BindChannelThread() = 0;
  /// Makes the device's context current on the calling thread until Backend::LeaveContext, and returns its handle: 0
  /// for a device without contexts. Thread: any.
  [[nodiscard]] virtual Result<uint64_t> EnterContext() { return uint64_t{0}; }
  [[nodiscard]] virtual Result<std::unique_ptr<Stream>> CreateStream(const StreamRequest& request) = 0;

  /// `image` is a cubin, PTX, or, on the CPU device, the path of a shared object. Thread: control. May take long.
  [[nodiscard]] virtual Result<std::shared_ptr<Module>> LoadModule(std::span<const std::byte> image) = 0;
  /// A kernel of a module that is loaded for it alone.
  [[nodiscard]] Result<std::shared_ptr<Kernel>> LoadKernel(const KernelRequest& request) {
    Result<std::shared_ptr<Module>> module = LoadModule(request.image);
    MR_TRY(module.status());
    return module.value()->FindKernel(request.entry, request.is_bounded, request.is_launching);
  }
  /// A library's call in the place of a kernel. kUnavailable: there is no such library; kUnsupported: it does not do
  /// this. Thread: control. May take long.
  [[nodiscard]] virtual Result<PlannedCall> LoadPlan(const LibraryPlan&) {
    return Status(StatusCode::kUnavailable, "finding a library");
  }
  /// Thread: any, with the device's context current as by EnterContext, until the capture is destroyed. May take long.
  [[nodiscard]] virtual Result<std::unique_ptr<CallCapture>> BeginCapture() {
    return Status(StatusCode::kUnsupported, "capturing calls");
  }
  /// Makes a graph that streams of this device, its home, launch. kUnsupported if the backend lacks something that a
  /// node needs. Thread: blocking calls. May take long.
  [[nodiscard]] virtual Result<std::unique_ptr<Graph>> BuildGraph(std::vector<GraphNode> nodes) = 0;
  /// Page-locks host memory for this device, or unlocks it. Always unregister before the memory is freed. Thread:
  /// control. May take long.
  virtual Status RegisterHost(std::span<std::byte> range) = 0;
  virtual Status UnregisterHost(std::span<std::byte> range) = 0;
  /// Memory for fault reports, which kernels and the host access at the same address. Thread: control or channel.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> AllocateFaultSlots(uint32_t count) = 0;
  /// Free bytes now, for error messages. Thread: channel.
  [[nodiscard]] virtual uint64_t FreeBytes() const = 0;

  /// Lowers the memory for arrays to so many bytes. Before the first allocation.
  virtual Status LimitMemory(uint64_t) { return Status(StatusCode::kUnsupported, "limiting the memory of a GPU"); }
  /// Surrounds the memory of all arrays with pages that no kernel can access. Before the first allocation.
  virtual Status GuardMemory() { return Status(StatusCode::kUnsupported, "guarding the memory of a GPU"); }

  /// Chooses at random what the ordering rules leave open, from now on. Before the first stream.
  virtual Status Reseed(uint32_t) { return Status(StatusCode::kUnsupported, "choosing the order of a GPU's work"); }

  /// Compares the clock of the device, if it has its own, with the host's: when the recording of a timeline begins, and
  /// every second while it lasts. Thread: control. Blocks for some microseconds.
  virtual Status AlignClocks() { return {}; }

  /// Makes partitions that share no multiprocessor and no thread, one for each share, which is rounded up to whole
  /// units; 0 is the rest. kState while there are partitions. Thread: control. May take long.
  [[nodiscard]] virtual Result<Division> Divide(std::span<const uint32_t>) {
    return Status(StatusCode::kUnsupported, "dividing the device");
  }
  /// kState while the partition has streams. Thread: control.
  virtual Status EndPartition(uint32_t) { return {StatusCode::kState, "ending a partition that is not open"}; }

  /// Runs kernels on so many threads. Before the first stream, and before Reseed.
  virtual Status LimitThreads(uint32_t) { return Status(StatusCode::kUnsupported, "choosing the threads of a GPU"); }

  /// False if copies access all host memory at the same cost, so that no blocking-calls thread is needed.
  [[nodiscard]] virtual bool NeedsLockedMemory() const = 0;

  // Events. Thread: channel, unless stated otherwise.
  [[nodiscard]] virtual Result<std::unique_ptr<EventHandle>> CreateEvent(protocol::EventKind kind) = 0;
  /// Milliseconds from `start` to `end`, two completed timestamps; negative when `end` came first.
  [[nodiscard]] virtual Result<double> Elapsed(const EventHandle& start, const EventHandle& end) = 0;

  // Sharing with other processes. kUnsupported if the device lacks it. Thread: control.
  [[nodiscard]] virtual Result<IpcHandle> ExportEvent(EventHandle& event_handle) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<EventHandle>> OpenEvent(const IpcHandle& handle) = 0;
  /// Memory that ExportMemory accepts: a separate allocation, not from the pool, or a freed one that was never
  /// exported. Thread: blocking calls. May block.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> AllocateInterprocess(uint64_t bytes) = 0;
  /// Thread: channel, which ensures that the memory is not freed meanwhile.
  [[nodiscard]] virtual Result<IpcHandle> ExportMemory(const Memory& memory) = 0;
  /// Another process's memory; destroying it closes the mapping. `Stream::Free` accepts it too.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> OpenMemory(const IpcHandle& handle, uint64_t bytes) = 0;

  /// Memory of a texture, for `Stream::Free`. Its address is what an ArrayCopy and a TextureRequest take. Thread:
  /// blocking calls. May block.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> AllocateArray(const protocol::TextureShape&) {
    return Status(StatusCode::kUnsupported, "textures");
  }
  /// A texture or surface, for `Stream::Free`. Its address is the value that kernels get. Thread: channel.
  [[nodiscard]] virtual Result<std::unique_ptr<Memory>> CreateTexture(const TextureRequest&) {
    return Status(StatusCode::kUnsupported, "textures");
  }

  /// Bytes of memory outside of the pool that were freed but are still held, because returning them would wait for the
  /// device. Thread: channel.
  [[nodiscard]] virtual uint64_t KeptBytes() const { return 0; }
  /// Returns those whose last use is over, before an allocation fails. Thread: blocking calls. Blocks.
  virtual void GiveBackKept() {}

  // The pool. Thread: control.
  [[nodiscard]] virtual Result<PoolStats> PoolUse() = 0;
  /// Bytes that the pool keeps while unused; 0 returns them at the next synchronization.
  virtual Status SetReleaseThreshold(uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<uint64_t> ReleaseThreshold() = 0;
  /// Returns unused memory at once, down to `keep_bytes`. May wait for the device if interprocess memory is kept.
  virtual Status Trim(uint64_t keep_bytes) = 0;
  virtual Status ResetHighWater() = 0;

  // Peers, by the ordinal of a device of this backend, which may be closed. The peer accesses this device's memory. For
  // the device itself: true, and nothing to set. Thread: control.
  [[nodiscard]] virtual Result<PeerState> Peer(uint32_t ordinal, protocol::PeerWhat what) = 0;
  virtual Status SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) = 0;
  /// Sends data both ways between this device and an open one and compares it, because broken peer transfers report
  /// success. Thread: control. Blocks.
  [[nodiscard]] virtual Result<protocol::PeerRoute> ProbePeer(Device& other) = 0;

  /// The device's work is no longer needed: work that has not begun is dropped if the backend can, and running work is
  /// stopped if possible. Tickets of dropped work never complete. No work is submitted afterwards. A further call may
  /// drop more, since other devices may no longer need their promised tickets. Thread: channel.
  virtual void Cancel() {}
  /// Waits for queued work and frees everything. Thread: channel, after its last record. May take long.
  virtual void Close() = 0;
};

class Backend : public WithPeerGrants {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  /// Thread: any. Cheap after the first call; creates no context.
  [[nodiscard]] virtual BackendReport Enumerate() = 0;
  /// Ends Device::EnterContext on the calling thread. Needs no open device. Thread: any.
  virtual void LeaveContext() const {}
  /// Opens a device. `timeline` is the memory of its slots, which the backend makes visible to the device.
  /// Thread: control. May take long.
  [[nodiscard]] virtual Result<std::unique_ptr<Device>> Open(uint32_t ordinal,
                                                             std::span<protocol::TimelineSlot> timeline) = 0;
};

}  // namespace millrace::hal
