#include "runtime/recorder.h"

#include <algorithm>
#include <utility>

#include "runtime/nvtx.h"
#include "runtime/record_reader.h"

namespace millrace {

namespace {

using protocol::Opcode;

/// Of what a CopyRecord and each entry of a batch have.
template <typename Copy>
uint64_t RouteOf(const Copy& copy) {
  constexpr auto kHost = static_cast<uint16_t>(protocol::MemorySpace::kHost);
  const auto bit = [](protocol::RecordedCopy flag) { return static_cast<uint64_t>(flag); };
  const bool is_from_host = copy.src_space == kHost;
  const bool is_to_host = copy.dst_space == kHost;
  const uint32_t own =
      static_cast<uint32_t>(protocol::CopyFlag::kPinned) | static_cast<uint32_t>(protocol::CopyFlag::kStaged);
  uint64_t route = 0;
  if (is_from_host) route |= bit(protocol::RecordedCopy::kFromHost);
  if (is_to_host) route |= bit(protocol::RecordedCopy::kToHost);
  if (!is_from_host && !is_to_host && copy.src_device != copy.dst_device) {
    route |= bit(protocol::RecordedCopy::kBetweenDevices);
  }
  if ((is_from_host || is_to_host) && (copy.flags & own) == 0) route |= bit(protocol::RecordedCopy::kPageable);
  return route;
}

/// The `end` of a RecordedTime that tells of a submitted record.
uint64_t DetailOf(const protocol::RecordHeader& header, ByteReader reader) {
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kCopy: {
      protocol::CopyRecord copy;
      return reader.Read(copy) ? RouteOf(copy) : 0;
    }
    case Opcode::kCopyBatch: {
      protocol::CopyBatchRecord batch;
      if (!reader.Read(batch)) return 0;
      uint64_t route = 0;
      protocol::BatchedCopy copy;
      for (uint32_t n = 0; n < batch.count && reader.Read(copy); ++n) route |= RouteOf(copy);
      return route;
    }
    case Opcode::kLaunch: {
      protocol::LaunchRecord launch;
      if (!reader.Read(launch)) return 0;
      const auto volume = [](uint64_t x, uint64_t y, uint64_t z) { return x * y * z; };
      return volume(launch.grid_x, launch.grid_y, launch.grid_z) *
             volume(launch.block_x, launch.block_y, launch.block_z);
    }
    default:
      return 0;
  }
}

}  // namespace

Recorder::Recorder() : is_on_(nvtx::is_on) {}

void Recorder::Start(uint32_t owner, size_t most, protocol::DeviceTimes times) {
  std::lock_guard lock(mutex_);
  List* list = Find(owner);
  if (list == nullptr) list = &lists_.emplace_back();
  list->owner = owner;
  list->most = most;
  list->device_times = times;
  Tell();
}

void Recorder::Stop(uint32_t owner) {
  std::lock_guard lock(mutex_);
  std::erase_if(lists_, [owner](const List& list) { return list.owner == owner; });
  Tell();
}

void Recorder::Note(const protocol::RecordedTime& time) noexcept {
  std::lock_guard lock(mutex_);
  // All may have been stopped meanwhile.
  for (List& list : lists_) {
    if (list.times.size() - list.first >= list.most) {
      ++list.first;
      ++list.dropped;
    }
    if (list.first > list.most) {
      list.times.erase(list.times.begin(), list.times.begin() + static_cast<ptrdiff_t>(list.first));
      list.first = 0;
    }
    list.times.push_back(time);
  }
}

void Recorder::NoteSubmitted(std::span<const std::byte> record, uint64_t ticket, uint64_t now) noexcept {
  const protocol::RecordHeader header = Record::First(record).header;
  Note({static_cast<uint16_t>(protocol::RecordedKind::kSubmitted), header.opcode, header.stream, ticket, now,
        DetailOf(header, ByteReader(record))});
}

Recorder::Taken Recorder::Take(uint32_t owner, std::span<protocol::RecordedTime> into) {
  std::lock_guard lock(mutex_);
  List* const list = Find(owner);
  if (list == nullptr) return {};
  const size_t count = std::min(into.size(), list->times.size() - list->first);
  std::copy_n(list->times.begin() + static_cast<ptrdiff_t>(list->first), count, into.begin());
  list->first += count;
  if (list->first == list->times.size()) {
    list->times.clear();
    list->first = 0;
  }
  return {count, std::exchange(list->dropped, 0)};
}

Recorder::List* Recorder::Find(uint32_t owner) {
  const auto found = std::ranges::find(lists_, owner, &List::owner);
  return found == lists_.end() ? nullptr : &*found;
}

void Recorder::Tell() {
  is_on_.store(!lists_.empty() || nvtx::is_on, std::memory_order_relaxed);
  auto most = protocol::DeviceTimes::kNone;
  for (const List& list : lists_) most = std::max(most, list.device_times);
  device_times_.store(most, std::memory_order_relaxed);
}

}  // namespace millrace
