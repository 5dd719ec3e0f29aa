// Memory for the coroutine frames of the blocks that one pool thread runs.
//
// Millions of frames are allocated and freed, in few sizes, so they come from chunks, with a free list per size: the
// memory held is the peak of live frames. The chunks belong to the device, which frees them when the run of blocks ends
// for any reason.
#pragma once

#include "kernel_exports.h"

struct mr_frames {
  /// Frames are aligned to a cache line, which satisfies every vector type.
  static constexpr size_t granule = 64;
  static constexpr size_t first_chunk_bytes = size_t{64} << 10;
  static constexpr size_t last_chunk_bytes = size_t{4} << 20;
  /// Larger frames, in granules, hold local arrays. One list has all of them, and a search finds the size.
  static constexpr unsigned listed = 64;

  struct Free {
    Free* next;
    size_t granules;
  };
  Free* free_lists[listed + 1] = {};
  char* next = nullptr;
  char* end = nullptr;
  size_t chunk_bytes = first_chunk_bytes;

  mr_frames() = default;
  mr_frames(const mr_frames&) = delete;

  void* take(size_t bytes) {
    const size_t granules = (bytes + granule - 1) / granule;
    Free** place = &free_lists[granules < listed ? granules : listed];
    // The last list has frames of several sizes.
    while (*place != nullptr && (*place)->granules != granules) place = &(*place)->next;
    if (Free* found = *place) {
      *place = found->next;
      return found;
    }
    return cut(granules * granule);
  }

  void give_back(void* address, size_t bytes) {
    const size_t granules = (bytes + granule - 1) / granule;
    Free** list = &free_lists[granules < listed ? granules : listed];
    Free* freed = static_cast<Free*>(address);
    freed->next = *list;
    freed->granules = granules;
    *list = freed;
  }

 private:
  __attribute__((noinline)) void* cut(size_t bytes) {
    if (static_cast<size_t>(end - next) < bytes) grow(bytes);
    void* frame = next;
    next += bytes;
    return frame;
  }

  void grow(size_t bytes) {
    while (chunk_bytes < bytes) chunk_bytes *= 2;
    next = static_cast<char*>(mr_take_memory(chunk_bytes));
    end = next + chunk_bytes;
    if (chunk_bytes < last_chunk_bytes) chunk_bytes *= 2;
  }
};

/// The pool thread's, while it runs blocks.
MR_OF_THREAD mr_frames* mr_current_frames;
