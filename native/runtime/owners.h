// What a channel notes of the threads that share its device, by the numbers of their environments. Thread: channel.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace millrace {

struct Owners {
  /// A thread that submits nothing any more.
  struct Leaving {
    uint32_t streams = 0;  // Not destroyed yet.
    std::vector<std::function<void()>> told;
  };
  /// Handles that a thread has not freed.
  struct Owned {
    std::unordered_set<uint32_t> memory;
    std::unordered_set<uint32_t> events;
  };
  std::unordered_map<uint32_t, Leaving> leaving;
  std::unordered_map<uint32_t, Owned> owned;  // Nothing of the thread that opened the device.

  /// Threads that left memory and no stream, while every slot for streams is taken, and whom to tell of their end.
  std::vector<std::pair<uint32_t, std::function<void()>>> awaiting_slot;

  std::unordered_map<uint32_t, uint32_t> claims;  // By memory handle: ADOPT records that wait for its ALLOC.
  std::vector<uint32_t> awaiting_claims;          // Streams with a FREE of such memory.
};

}  // namespace millrace
