#include "runtime/issue/elsewhere.h"

#include <algorithm>
#include <utility>

#include "runtime/channel.h"
#include "runtime/fault_reports.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/launches.h"
#include "runtime/registry.h"

namespace millrace {

using protocol::ArgKind;
using protocol::MemorySpace;
using protocol::PeerWhat;

void Elsewhere::Open(RecordReader entries, uint32_t count) {
  std::vector<uint32_t> devices;
  protocol::LaunchArg arg;
  for (; count > 0 && entries.Read(arg); --count) {
    if (arg.kind == static_cast<uint8_t>(ArgKind::kElsewhere)) devices.push_back(arg.handle);
  }
  // In the order of the ids, so that two channels that lock each other cannot deadlock.
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (const uint32_t device : devices) {
    Home& home = homes_.emplace_back(Home{.id = device});
    home.channel = device == device_.id() ? channel_.shared_from_this() : Registry::Instance().Find(device);
    if (home.channel == nullptr) {
      home.is_gone = true;
    } else if (!IsOwn(home)) {
      locks_.emplace_back(home.channel->access().streams_mutex());
      home.is_gone = home.channel->LostStatus() != StatusCode::kOk || home.channel->access().IfOpen() == nullptr;
    }
    if (home.is_gone) FailOnce({.status = FaultReports::Gone(), .lost_device = device});
  }
}

Elsewhere::Home& Elsewhere::HomeOf(uint32_t device) {
  return *std::ranges::find(homes_, device, &Home::id);
}

void Elsewhere::FailOnce(Failure failure) {
  if (!failure_) failure_ = std::move(failure);
}

Elsewhere::Sight Elsewhere::ParkFor(const Home& home, ParkReason reason) {
  waits_.ParkFor(stream_, *home.channel, reason);
  return Sight::kLater;
}

Elsewhere::Sight Elsewhere::Find(const protocol::LaunchArg& where, const protocol::LaunchArg& arg, Found& found) {
  Home& home = HomeOf(where.handle);
  if (home.is_gone) return Sight::kFound;
  if (where.size == static_cast<uint16_t>(MemorySpace::kDevice)) return FindDevice(home, where, arg, found);
  if (where.size == static_cast<uint16_t>(MemorySpace::kHost)) return FindHost(home, where, arg, found);
  return Sight::kMalformed;
}

Elsewhere::Sight Elsewhere::FindDevice(Home& home, const protocol::LaunchArg& where, const protocol::LaunchArg& arg,
                                       Found& found) {
  // Its own memory has no ELSEWHERE entry, and only its own backend knows the addresses of device memory.
  if (IsOwn(home) || &home.channel->backend() != &device_.backend()) return Sight::kMalformed;
  auto seen = home.channel->tables().memory.Look(arg.handle, channel_.shared_from_this(), stream_.index());
  if (seen.comes_later) return ParkFor(home, ParkReason::kPoint);
  if (!seen.object || !Fits(arg.value, where.value, (*seen.object)->bytes)) return Sight::kMalformed;
  const MemoryRef& entry = held_.emplace_back(std::move(*seen.object));
  const PeerWhat what = entry->kind == protocol::AllocKind::kInterprocess ? PeerWhat::kMemory : PeerWhat::kPool;
  if (needs_grants_ && !home.channel->access().IsGranted(device_.info().ordinal, what)) {
    FailOnce({.status = Status(StatusCode::kState,
                               "the access of its device to an array of another device was revoked: grant it again "
                               "with `peers.grant`")});
  }
  found.entry = entry.get();
  if (entry->address != nullptr) found.address = entry->address + arg.value;
  return Sight::kFound;
}

Elsewhere::Sight Elsewhere::FindHost(Home& home, const protocol::LaunchArg& where, const protocol::LaunchArg& arg,
                                     Found& found) {
  HostEntry host;
  if (IsOwn(home)) {
    if (const HostEntry* const known = tables_.host.Find(arg.handle)) {
      host = *known;
    } else if (tables_.host.WaitsFor(arg.handle, channel_.shared_from_this(), stream_.index())) {
      if (!stream_.has_owner_left) return ParkFor(home, ParkReason::kPin);
      // The thread that submitted it left before it registered the memory.
      FailOnce({.status = FaultReports::Gone()});
      return Sight::kFound;
    }
  } else {
    auto seen = home.channel->tables().host.Look(arg.handle, channel_.shared_from_this(), stream_.index());
    if (seen.comes_later) return ParkFor(home, ParkReason::kPin);
    if (seen.object) host = std::move(*seen.object);
    // The memory is page-locked only for devices of its own backend.
    if (&home.channel->backend() != &device_.backend()) host.is_page_locked = false;
  }
  if (host.state == nullptr || !Fits(arg.value, where.value, host.bytes.size())) return Sight::kMalformed;
  if (device_.needs_locked_memory() && !host.is_page_locked) {
    FailOnce(
        {.status = Status(StatusCode::kState,
                          "its pinned memory could not be page-locked, which a kernel needs: make a smaller array, "
                          "or copy it to the device")});
  }
  found.address = host.bytes.data() + arg.value;
  const HostRange range{host.state, arg.value, where.value};
  if (Reads(arg.access)) host_.push_back({range, false, reported_});
  if (Writes(arg.access)) host_.push_back({range, true, reported_});
  return Sight::kFound;
}

FailureId Elsewhere::CauseOfHost() const {
  FailureId cause = 0;
  for (const HostUse& use : host_) {
    if (!use.is_write) TakeFirst(cause, use.range.poisoned_by(reported_));
  }
  return cause;
}

void Elsewhere::NoteUse(Ticket ticket) {
  for (const Home& home : homes_) {
    if (!IsOwn(home)) home.channel->peers().users.Add(channel_.weak_from_this(), stream_, ticket);
  }
}

}  // namespace millrace
