#include "runtime/recorder.h"

#include <algorithm>
#include <utility>

namespace millrace {

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
  is_on_.store(!lists_.empty(), std::memory_order_relaxed);
  auto most = protocol::DeviceTimes::kNone;
  for (const List& list : lists_) most = std::max(most, list.device_times);
  device_times_.store(most, std::memory_order_relaxed);
}

}  // namespace millrace
