// What a device's control thread asks of its channel. Most of it goes to the device itself, beside the channel, which
// issues records meanwhile and only waits with closing.

#include <algorithm>
#include <utility>

#include "runtime/channel.h"
#include "runtime/registry.h"

namespace millrace {

using hal::IpcHandle;
using protocol::EventKind;
using protocol::PeerRoute;

namespace {

Status NoEvent() {
  return Status(StatusCode::kState, "the handle names no event");
}

}  // namespace

Status Channel::Closed() {
  return Status(StatusCode::kState, "the device was closed");
}

// ── Host memory ────────────────────────────────────────────────────────────────────────────────────────────────────

Status Channel::RegisterHost(uint32_t handle, std::span<std::byte> bytes, bool page_lock) {
  Status status;
  if (page_lock) status = Lock(bytes);
  const bool is_locked = page_lock && status.ok();
  // Memory that could not be page-locked still copies, only slower; the owner is told.
  Post([this, handle, bytes, is_locked] {
    host_.Bind(handle, {.bytes = bytes, .is_page_locked = is_locked, .state = std::make_shared<HostState>()});
  });
  return status;
}

LockedPages* Channel::FindLocked(std::span<std::byte> bytes) {
  const auto has_it = [&](const LockedPages& pages) {
    return pages.bytes.data() <= bytes.data() && bytes.data() + bytes.size() <= pages.bytes.data() + pages.bytes.size();
  };
  const auto found = std::find_if(locked_.begin(), locked_.end(), has_it);
  return found == locked_.end() ? nullptr : &*found;
}

Status Channel::Lock(std::span<std::byte> bytes) {
  std::lock_guard lock(locked_mutex_);
  // The driver refuses to lock pages twice; another thread of the device may have locked these.
  if (LockedPages* const known = FindLocked(bytes)) {
    ++known->handles;
    return {};
  }
  const Status status = WithDevice([&](hal::Device& device) { return device.RegisterHost(bytes); });
  if (!status.ok()) return status;
  pinned_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
  locked_.push_back({bytes, 1});
  return status;
}

Status Channel::Unlock(std::span<std::byte> bytes) {
  std::lock_guard lock(locked_mutex_);
  LockedPages* const known = FindLocked(bytes);
  if (known == nullptr || --known->handles > 0) return {};
  const std::span<std::byte> pages = known->bytes;
  locked_.erase(locked_.begin() + (known - locked_.data()));
  pinned_bytes_.fetch_sub(pages.size(), std::memory_order_relaxed);
  return WithDevice([&](hal::Device& device) { return device.UnregisterHost(pages); });
}

Status Channel::UnregisterHost(uint32_t handle) {
  std::optional<HostEntry> entry;
  RunOnChannel([&] { entry = host_.Take(handle); });
  if (!entry || !entry->is_page_locked) return {};
  return Unlock(entry->bytes);
}

// ── Peers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Result<PeerRoute> Channel::ProbePeer(uint32_t from) {
  const std::shared_ptr<Channel> other = Registry::Instance().Find(from);
  auto probed = Probe(other.get());
  // Whatever went wrong, bytes that go through the host's memory arrive.
  const PeerRoute route = probed.ok() ? probed.value() : PeerRoute::kStaged;
  peer_routes_.Set(from, route);
  return probed.ok() ? Result<PeerRoute>(route) : Result<PeerRoute>(probed.status());
}

Result<PeerRoute> Channel::Probe(Channel* other) {
  if (other == nullptr || &other->backend_ != &backend_)
    return Status(StatusCode::kState, "there is no such open device");
  if (other == this) return PeerRoute::kDirect;
  // Neither closes meanwhile; both go on issuing.
  Channel& lower = id_ < other->id_ ? *this : *other;
  Channel& higher = id_ < other->id_ ? *other : *this;
  const std::shared_lock lower_lock(lower.device_mutex_);
  const std::shared_lock higher_lock(higher.device_mutex_);
  if (is_shut_ || other->is_shut_) return Closed();
  return device_->ProbePeer(*other->device_);
}

// ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Result<double> Channel::Elapsed(uint32_t start, uint32_t end) {
  Result<double> elapsed = Closed();
  RunOnChannel([&] {
    if (is_shut_) return;
    const EventEntry* entries[2] = {};
    for (int n = 0; const uint32_t handle : {start, end}) {
      const EventRef* const found = events_table_.Find(handle);
      if (found == nullptr || (*found)->kind != EventKind::kTiming) {
        elapsed = NoEvent();
        return;
      }
      const EventEntry& entry = **found;
      if (entry.stream == nullptr || entry.stream->Completed() < entry.ticket) {
        elapsed = Status(StatusCode::kState, "the device has not reached the event yet");
        return;
      }
      entries[n++] = &entry;
    }
    elapsed = device_->Elapsed(*entries[0]->event_handle, *entries[1]->event_handle);
  });
  return elapsed;
}

Result<IpcHandle> Channel::ExportEvent(uint32_t event_handle) {
  Result<EventRef> entry = Closed();
  RunOnChannel([&] {
    if (is_shut_) return;
    EventRef* const found = events_table_.Find(event_handle);
    entry = found != nullptr ? Result<EventRef>(*found) : CreateEvent(event_handle, EventKind::kInterprocess);
  });
  if (!entry.ok()) return entry.status();
  if (entry.value()->kind != EventKind::kInterprocess) return NoEvent();
  auto exported = WithDevice([&](hal::Device& device) { return device.ExportEvent(*entry.value()->event_handle); });
  // Its last owner may be this one by now, and events are destroyed by the channel.
  Post([entry = std::move(entry).value()] {});
  return exported;
}

Status Channel::OpenEvent(uint32_t event_handle, const IpcHandle& ipc) {
  auto opened = WithDevice([&](hal::Device& device) { return device.OpenEvent(ipc); });
  if (!opened.ok()) return opened.status();
  auto entry = std::make_shared<EventEntry>();
  entry->event_handle = std::move(opened).value();
  entry->kind = EventKind::kInterprocess;
  Status bound = Closed();
  RunOnChannel([&] {
    if (is_shut_) return;
    events_table_.Bind(event_handle, std::move(entry));
    bound = {};
  });
  return bound;
}

// ── Memory of other processes ──────────────────────────────────────────────────────────────────────────────────────

Result<IpcHandle> Channel::ExportMemory(uint32_t memory) {
  Result<IpcHandle> exported = Closed();
  // On the channel, which alone knows that nobody frees the memory meanwhile.
  RunOnChannel([&] {
    if (is_shut_) return;
    const MemoryRef* const found = memory_.Find(memory);
    if (found == nullptr || (*found)->memory == nullptr) {
      exported = Status(StatusCode::kState, "the handle names no memory");
    } else {
      exported = device_->ExportMemory(*(*found)->memory);
    }
  });
  return exported;
}

Status Channel::OpenMemory(uint32_t memory, const IpcHandle& ipc, uint64_t bytes) {
  auto opened = WithDevice([&](hal::Device& device) { return device.OpenMemory(ipc, bytes); });
  Status bound = opened.ok() ? Closed() : opened.status();
  RunOnChannel([&] {
    if (is_shut_) return;
    if (memory_.Find(memory) != nullptr) {
      bound = Status(StatusCode::kArgument, "the handle names memory already");
    } else if (opened.ok()) {
      BindMemory(memory, protocol::AllocKind::kInterprocess, bytes, std::move(opened).value());
      bound = {};
    } else {
      auto entry = std::make_shared<MemoryEntry>();
      entry->bytes = bytes;
      entry->poison.Set(next_failure_.fetch_add(1));
      memory_.Bind(memory, std::move(entry));
    }
  });
  return bound;
}

}  // namespace millrace
