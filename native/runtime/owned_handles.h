// Which handles the threads that share a device have not freed, by the numbers of their environments, and which memory
// is about to get another handle. Thread: channel.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/stream_state.h"

namespace millrace {

/// Nothing is noted for number 0, the thread that opened the device.
class OwnedHandles {
 public:
  struct Handles {
    std::unordered_set<uint32_t> memory;
    std::unordered_set<uint32_t> events;
    std::unordered_set<uint32_t> graphs;
  };
  void AddMemory(uint32_t owner_id, uint32_t handle) {
    if (owner_id != 0) owned_[owner_id].memory.insert(handle);
  }
  void AddEvent(uint32_t owner_id, uint32_t handle) {
    if (owner_id != 0) owned_[owner_id].events.insert(handle);
  }
  void AddGraph(uint32_t owner_id, uint32_t handle) {
    if (owner_id != 0) owned_[owner_id].graphs.insert(handle);
  }
  void RemoveMemory(uint32_t owner_id, uint32_t handle) {
    if (const auto found = owned_.find(owner_id); found != owned_.end()) found->second.memory.erase(handle);
  }
  void RemoveEvent(uint32_t owner_id, uint32_t handle) {
    if (const auto found = owned_.find(owner_id); found != owned_.end()) found->second.events.erase(handle);
  }
  void RemoveGraph(uint32_t owner_id, uint32_t handle) {
    if (const auto found = owned_.find(owner_id); found != owned_.end()) found->second.graphs.erase(handle);
  }
  [[nodiscard]] bool HasAny(uint32_t owner_id) {
    const auto found = owned_.find(owner_id);
    if (found == owned_.end()) return false;
    const auto& [memory, events, graphs] = found->second;
    if (!memory.empty() || !events.empty() || !graphs.empty()) return true;
    owned_.erase(found);
    return false;
  }
  /// Only if it has any.
  [[nodiscard]] Handles Take(uint32_t owner_id) { return std::move(owned_.extract(owner_id).mapped()); }

 private:
  std::unordered_map<uint32_t, Handles> owned_;
};

/// Memory for which ADOPT records wait because it is not allocated yet. A FREE may stand right behind the ALLOC; it
/// then waits for those records.
class ClaimedMemory {
 public:
  void Add(uint32_t handle) { ++claims_[handle]; }
  [[nodiscard]] bool Contains(uint32_t handle) const { return claims_.contains(handle); }
  /// The stream is among those that Remove returns next.
  void Await(StreamState& stream) { waiting_.push_back(&stream); }
  /// One ADOPT record has found the memory. Returns the streams to wake.
  [[nodiscard]] std::vector<StreamState*> Remove(uint32_t handle) {
    const auto found = claims_.find(handle);
    if (found == claims_.end() || --found->second > 0) return {};
    claims_.erase(found);
    return std::exchange(waiting_, {});
  }

 private:
  std::unordered_map<uint32_t, uint32_t> claims_;  // By memory handle: the number of records.
  std::vector<StreamState*> waiting_;              // With a FREE of such memory.
};

}  // namespace millrace
