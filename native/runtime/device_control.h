// What a device's control thread asks of it: kernels, modules and their variables, host memory, routes between devices,
// and what other processes share. The control thread calls the device directly for most of it. Meanwhile the channel's
// thread issues records, and only delays closing the device. The channel's thread then binds the result to its handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "hal/hal.h"
#include "runtime/device_access.h"
#include "runtime/page_locks.h"
#include "runtime/peers.h"
#include "runtime/resource_tables.h"
#include "runtime/thread_inbox.h"

namespace millrace {

struct KernelInstall {
  hal::KernelRequest request;
  bool is_checked = false;
  /// It is of this module, whatever the request's image is.
  std::optional<uint32_t> module;
};

/// Thread: control; it may block for the driver and for the channel's thread. No lock of its own: DeviceAccess keeps
/// the device open, and the tables are changed by the channel's thread.
class DeviceControl {
 public:
  DeviceControl(DeviceAccess& device, ResourceTables& tables, Peers& peers, PageLocks& locks, ThreadInbox& inbox)
      : device_(device), tables_(tables), peers_(peers), locks_(locks), inbox_(inbox) {}

  // ── Kernels, modules and their variables. ──
  Result<hal::KernelLimits> InstallKernel(uint32_t handle, const KernelInstall& install);
  /// The same for a library's call in the place of the kernel.
  Result<hal::LibraryInfo> InstallPlan(uint32_t handle, const hal::LibraryPlan& plan);
  /// Thread: any.
  void FailKernel(uint32_t handle, Status why);
  /// What a CallCapture made. Thread: any.
  void BindCaptured(uint32_t handle, std::shared_ptr<hal::Kernel> kernel) {
    BindKernel(handle, std::move(kernel), false);
  }
  /// No record that is still to be issued names it. Thread: any.
  void DropKernel(uint32_t handle);
  /// Keeps it under a number that the owner chose, until the device closes.
  Status LoadModule(uint32_t module, std::span<const std::byte> image);
  /// Binds a variable of so many bytes to a memory handle, for good; of another size, it is only told how many it has.
  Result<uint64_t> BindVariable(uint32_t handle, uint32_t module, const std::string& name, uint64_t bytes);
  /// There is no such variable: its memory is poisoned by this failure.
  void FailVariable(uint32_t handle, uint64_t bytes, FailureId failure);

  // ── Host memory. ──
  Status RegisterHost(uint32_t handle, std::span<std::byte> bytes, bool page_lock);
  /// Lets go of host memory that no queued record names any more. Blocks for the channel and the driver.
  Status UnregisterHost(uint32_t handle);

  // ── Other devices and processes, events. ──
  /// As hal::Device::Peer.
  Result<hal::PeerState> Peer(uint32_t ordinal, protocol::PeerWhat what);
  /// As hal::Device::SetPeer, for kernels that are issued from now on. False if kernels of the peer that were issued
  /// before may still use the access, which then remains: call it again.
  Result<bool> SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted);
  /// Tries the route from an open device of the same backend to this one; copies between them wait until then. Blocks.
  Result<protocol::PeerRoute> ProbePeer(uint32_t from);
  /// Milliseconds between two complete timing events.
  Result<double> Elapsed(uint32_t start, uint32_t end);
  /// Binds the event if it was never recorded.
  Result<hal::IpcHandle> ExportEvent(uint32_t event_handle);
  Status OpenEvent(uint32_t event_handle, const hal::IpcHandle& ipc);
  Result<hal::IpcHandle> ExportMemory(uint32_t memory);
  /// Records that name the handle wait for it; when it cannot be opened, they fail.
  Status OpenMemory(uint32_t memory, const hal::IpcHandle& ipc, uint64_t bytes);

 private:
  Result<protocol::PeerRoute> Probe(uint32_t from);
  /// Binds memory that is there already to a handle, unless that names memory already, which may be in use.
  void BindLater(uint32_t handle, MemoryRef entry);
  void BindKernel(uint32_t handle, std::shared_ptr<hal::Kernel> kernel, bool is_checked);

  DeviceAccess& device_;
  ResourceTables& tables_;
  Peers& peers_;
  PageLocks& locks_;
  ThreadInbox& inbox_;
};

}  // namespace millrace
