// Memory for the coroutine frames of the blocks that one pool thread runs.
//
// Frames come and go by the million and have few sizes, so they are cut from chunks and kept in a list for each size
// when they are done with: what is held is what was alive at once. Everything is given back when the run of blocks
// ends.
#pragma once

#include "types.h"

extern "C" void* mr_malloc(size_t bytes) __asm__("malloc");
extern "C" void mr_free(void* address) __asm__("free");
extern "C" [[noreturn]] void mr_abort() __asm__("abort");

struct mr_frames {
  /// Frames start on a cache line, which also suits every alignment that a vector type asks for.
  static constexpr size_t granule = 64;
  static constexpr size_t first_chunk_bytes = size_t{64} << 10;
  static constexpr size_t last_chunk_bytes = size_t{4} << 20;
  /// Frames above this many granules hold arrays of a thread's own. They are looked for one by one.
  static constexpr unsigned listed = 64;

  struct Free {
    Free* next;
    size_t granules;
  };
  struct Chunk {
    Chunk* next;
    char padding[granule - sizeof(Chunk*)];
  };

  Free* free_lists[listed + 1] = {};
  Chunk* chunks = nullptr;
  char* next = nullptr;
  char* end = nullptr;
  size_t chunk_bytes = first_chunk_bytes;

  mr_frames() = default;
  mr_frames(const mr_frames&) = delete;
  ~mr_frames() {
    while (chunks != nullptr) {
      Chunk* after = chunks->next;
      mr_free(chunks);
      chunks = after;
    }
  }

  void* take(size_t bytes) {
    const size_t granules = (bytes + granule - 1) / granule;
    Free** place = &free_lists[granules < listed ? granules : listed];
    // In the last list sizes differ.
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
    while (chunk_bytes < bytes + 2 * granule) chunk_bytes *= 2;
    Chunk* chunk = static_cast<Chunk*>(mr_malloc(chunk_bytes));
    if (chunk == nullptr) mr_abort();  // As everywhere below the runtime: a process that has no memory left ends.
    chunk->next = chunks;
    chunks = chunk;
    const auto start = reinterpret_cast<uintptr_t>(chunk + 1);
    next = reinterpret_cast<char*>((start + granule - 1) / granule * granule);
    end = reinterpret_cast<char*>(chunk) + chunk_bytes;
    if (chunk_bytes < last_chunk_bytes) chunk_bytes *= 2;
  }
};

/// Of the pool thread, while it runs blocks.
static thread_local mr_frames* mr_current_frames;
