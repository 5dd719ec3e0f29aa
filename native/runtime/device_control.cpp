#include "runtime/device_control.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/failures.h"
#include "runtime/registry.h"

namespace millrace {

using hal::IpcHandle;
using protocol::EventKind;
using protocol::PeerRoute;
using Grant = hal::PeerGrants::State;

namespace {

Status NoEvent() {
  return Status(StatusCode::kState, "there is no event with this handle");
}

Status NotReached() {
  return Status(StatusCode::kState, "the device has not reached the event yet");
}

/// The driver event of an event of graphs: of the last launch that recorded both and has completed or, if there is
/// none, of the last that recorded this one.
void FindRecorded(const EventEntry& entry, const EventEntry& other, const hal::EventHandle*& found) {
  if (!entry.is_of_graph) return;
  for (auto each = entry.launched.rbegin(); each != entry.launched.rend(); ++each) {
    if (!each->IsOver()) continue;
    if (found == nullptr) found = each->event_handle.get();
    const bool has_both = std::ranges::any_of(other.launched, [&](const EventEntry::Launched& launched) {
      return launched.stream == each->stream && launched.ticket == each->ticket;
    });
    if (!has_both) continue;
    found = each->event_handle.get();
    return;
  }
}

Status NoModule() {
  return Status(StatusCode::kState, "the module is not loaded");
}

}  // namespace

// ── Host memory ────────────────────────────────────────────────────────────────────────────────────────────────────

Status DeviceControl::RegisterHost(uint32_t handle, std::span<std::byte> bytes, bool page_lock) {
  Status status;
  if (page_lock) status = locks_.Lock(bytes);
  const bool is_locked = page_lock && status.ok();
  // Memory that could not be page-locked still copies, only slower; the owner is told.
  inbox_.Post([this, handle, bytes, is_locked] {
    tables_.host.Bind(handle, {.bytes = bytes, .is_page_locked = is_locked, .state = std::make_shared<HostState>()});
  });
  return status;
}

Status DeviceControl::UnregisterHost(uint32_t handle) {
  std::optional<HostEntry> entry;
  inbox_.RunOnThread([&] { entry = tables_.host.Take(handle); });
  if (!entry || !entry->is_page_locked) return {};
  return locks_.Unlock(entry->bytes);
}

// ── Peers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Result<PeerRoute> DeviceControl::ProbePeer(uint32_t from) {
  auto probed = Probe(from);
  // Whatever went wrong, bytes that go through the host's memory arrive.
  const PeerRoute route = probed.ok() ? probed.value() : PeerRoute::kStaged;
  peers_.routes.Set(from, route);
  return probed.ok() ? Result<PeerRoute>(route) : Result<PeerRoute>(probed.status());
}

Result<hal::PeerState> DeviceControl::Peer(uint32_t ordinal, protocol::PeerWhat what) {
  Result<hal::PeerState> state = device_.With([=](hal::Device& device) { return device.Peer(ordinal, what); });
  hal::PeerGrants& grants = device_.backend().peer_grants();
  const uint32_t own = device_.info().ordinal;
  if (!state.ok() || ordinal == own) return state;
  hal::PeerState report = state.value();
  if (grants.Get(own, ordinal, what) == Grant::kEnding) {
    report.is_granted = false;
  } else {
    // Others in the process may have changed it.
    grants.Set(own, ordinal, what, report.is_granted ? Grant::kYes : Grant::kNo);
  }
  return report;
}

Result<bool> DeviceControl::SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) {
  hal::PeerGrants& grants = device_.backend().peer_grants();
  const uint32_t own = device_.info().ordinal;
  if (!is_granted && ordinal != own) {
    // A channel that issues a kernel with memory of this device looks at it, and notes the use, with this lock.
    std::lock_guard lock(device_.streams_mutex());
    grants.Set(own, ordinal, what, Grant::kEnding);
    for (const PeerUsers::Point& use : peers_.users.Unfinished()) {
      const std::shared_ptr<Channel> user = Registry::Instance().Find(use.device);
      if (user == nullptr || &user->backend() != &device_.backend() || user->info().ordinal != ordinal) continue;
      if (user->LostStatus() == StatusCode::kOk) return false;
    }
  }
  MR_TRY(device_.With([=](hal::Device& device) { return device.SetPeer(ordinal, what, is_granted); }));
  if (ordinal != own) grants.Set(own, ordinal, what, is_granted ? Grant::kYes : Grant::kNo);
  return true;
}

Result<PeerRoute> DeviceControl::Probe(uint32_t from) {
  const std::shared_ptr<Channel> other = Registry::Instance().Find(from);
  if (other == nullptr || &other->backend() != &device_.backend())
    return Status(StatusCode::kState, "there is no such open device");
  return from == device_.id() ? PeerRoute::kDirect : device_.ProbePeer(other->access());
}

// ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Result<double> DeviceControl::Elapsed(uint32_t start, uint32_t end) {
  Result<double> elapsed = DeviceAccess::Closed();
  inbox_.RunOnThread([&] {
    if (device_.is_shut()) return;
    const EventEntry* entries[2] = {};
    const hal::EventHandle* handles[2] = {};
    for (int n = 0; const uint32_t handle : {start, end}) {
      const EventRef* const found = tables_.events.Find(handle);
      if (found == nullptr || (*found)->kind != EventKind::kTiming) {
        elapsed = NoEvent();
        return;
      }
      const EventEntry& entry = **found;
      entries[n] = &entry;
      if (entry.is_of_graph) {
        ++n;
        continue;
      }
      if (entry.stream == nullptr || entry.stream->Completed() < entry.ticket) {
        elapsed = NotReached();
        return;
      }
      handles[n++] = entry.event_handle.get();
    }
    FindRecorded(*entries[0], *entries[1], handles[0]);
    FindRecorded(*entries[1], *entries[0], handles[1]);
    if (handles[0] == nullptr || handles[1] == nullptr) {
      elapsed = NotReached();
      return;
    }
    elapsed = device_.device().Elapsed(*handles[0], *handles[1]);
  });
  return elapsed;
}

Result<IpcHandle> DeviceControl::ExportEvent(uint32_t event_handle) {
  Result<EventRef> entry = DeviceAccess::Closed();
  inbox_.RunOnThread([&] {
    if (device_.is_shut()) return;
    EventRef* const found = tables_.events.Find(event_handle);
    entry = found != nullptr ? Result<EventRef>(*found)
                             : tables_.CreateEvent(device_.device(), event_handle, EventKind::kInterprocess);
  });
  if (!entry.ok()) return entry.status();
  if (entry.value()->kind != EventKind::kInterprocess) return NoEvent();
  auto exported = device_.With([&](hal::Device& device) { return device.ExportEvent(*entry.value()->event_handle); });
  // Its last owner may be this one by now, and events are destroyed by the channel.
  inbox_.Post([entry = std::move(entry).value()] {});
  return exported;
}

Status DeviceControl::OpenEvent(uint32_t event_handle, const IpcHandle& ipc) {
  auto opened = device_.With([&](hal::Device& device) { return device.OpenEvent(ipc); });
  if (!opened.ok()) return opened.status();
  auto entry = std::make_shared<EventEntry>();
  entry->event_handle = std::move(opened).value();
  entry->kind = EventKind::kInterprocess;
  Status bound = DeviceAccess::Closed();
  inbox_.RunOnThread([&] {
    if (device_.is_shut()) return;
    tables_.events.Bind(event_handle, std::move(entry));
    bound = {};
  });
  return bound;
}

// ── Memory of other processes ──────────────────────────────────────────────────────────────────────────────────────

Result<IpcHandle> DeviceControl::ExportMemory(uint32_t memory) {
  Result<IpcHandle> exported = DeviceAccess::Closed();
  // On the channel, which alone knows that nobody frees the memory meanwhile.
  inbox_.RunOnThread([&] {
    if (device_.is_shut()) return;
    const MemoryRef* const found = tables_.memory.Find(memory);
    if (found == nullptr || (*found)->memory == nullptr) {
      exported = Status(StatusCode::kState, "there is no memory with this handle");
    } else {
      exported = device_.device().ExportMemory(*(*found)->memory);
    }
  });
  return exported;
}

Status DeviceControl::OpenMemory(uint32_t memory, const IpcHandle& ipc, uint64_t bytes) {
  auto opened = device_.With([&](hal::Device& device) { return device.OpenMemory(ipc, bytes); });
  Status bound = opened.ok() ? DeviceAccess::Closed() : opened.status();
  inbox_.RunOnThread([&] {
    if (device_.is_shut()) return;
    if (tables_.memory.Find(memory) != nullptr) {
      bound = Status(StatusCode::kArgument, "this handle is already in use for other memory");
    } else if (opened.ok()) {
      tables_.BindMemory(memory, protocol::AllocKind::kInterprocess, bytes, std::move(opened).value());
      bound = {};
    } else {
      tables_.BindPoisoned(memory, bytes, NextFailureId());
    }
  });
  return bound;
}

// ── Kernels, modules and their variables ───────────────────────────────────────────────────────────────────────────

Result<hal::KernelLimits> DeviceControl::InstallKernel(uint32_t handle, const KernelInstall& install) {
  auto kernel = device_.With([&](hal::Device& device) {
    const hal::KernelRequest& request = install.request;
    if (!install.module) return device.LoadKernel(request);
    const auto loaded = tables_.modules.find(*install.module);
    if (loaded == tables_.modules.end()) return Result<std::shared_ptr<hal::Kernel>>(NoModule());
    return loaded->second->FindKernel(request.entry, request.is_bounded, request.is_launching);
  });
  if (!kernel.ok()) return kernel.status();
  const hal::KernelLimits limits = kernel.value()->limits();
  BindKernel(handle, std::move(kernel).value(), install.is_checked);
  return limits;
}

Result<hal::LibraryInfo> DeviceControl::InstallPlan(uint32_t handle, const hal::LibraryPlan& plan) {
  auto planned = device_.With([&](hal::Device& device) { return device.LoadPlan(plan); });
  if (!planned.ok()) return planned.status();
  BindKernel(handle, std::move(planned.value().kernel), planned.value().is_checked);
  return std::move(planned.value().library);
}

void DeviceControl::BindKernel(uint32_t handle, std::shared_ptr<hal::Kernel> kernel, bool is_checked) {
  inbox_.Post([this, handle, kernel = std::move(kernel), is_checked] {
    if (tables_.kernels.IsOver(handle)) return;
    tables_.kernels.Bind(handle, {.kernel = kernel, .is_checked = is_checked});
  });
}

void DeviceControl::FailKernel(uint32_t handle, Status why) {
  inbox_.Post([this, handle, why] {
    // The owner may already have given the index to another kernel, and a launch of that may have arrived first.
    if (!tables_.kernels.IsOver(handle)) tables_.kernels.Bind(handle, {.failure = why});
  });
}

void DeviceControl::DropKernel(uint32_t handle) {
  inbox_.Post([this, handle] { tables_.kernels.Take(handle); });
}

Status DeviceControl::LoadModule(uint32_t module, std::span<const std::byte> image) {
  return device_.With([&](hal::Device& device) -> Status {
    auto loaded = device.LoadModule(image);
    if (loaded.ok()) tables_.modules[module] = std::move(loaded).value();
    return loaded.status();
  });
}

Result<uint64_t> DeviceControl::BindVariable(uint32_t handle, uint32_t module, const std::string& name,
                                             uint64_t bytes) {
  auto found = device_.With([&](hal::Device&) -> Result<std::unique_ptr<hal::Memory>> {
    const auto loaded = tables_.modules.find(module);
    if (loaded == tables_.modules.end()) return NoModule();
    return loaded->second->FindVariable(name);
  });
  if (!found.ok()) return found.status();
  if (found.value()->bytes() != bytes) return found.value()->bytes();
  // Not counted as live: nobody allocated it, and nobody can free it.
  auto entry = std::make_shared<MemoryEntry>();
  entry->memory = std::move(found).value();
  entry->address = entry->memory->address();
  entry->bytes = bytes;
  entry->kind = protocol::AllocKind::kInterprocess;  // For other devices: it is not in the pool.
  BindLater(handle, std::move(entry));
  return bytes;
}

void DeviceControl::FailVariable(uint32_t handle, uint64_t bytes, FailureId failure) {
  auto entry = std::make_shared<MemoryEntry>();
  entry->bytes = bytes;
  entry->poison.Add(failure);
  BindLater(handle, std::move(entry));
}

void DeviceControl::BindLater(uint32_t handle, MemoryRef entry) {
  inbox_.Post([this, handle, entry = std::move(entry)]() mutable {
    if (tables_.memory.Find(handle) == nullptr) tables_.memory.Bind(handle, std::move(entry));
  });
}

}  // namespace millrace
