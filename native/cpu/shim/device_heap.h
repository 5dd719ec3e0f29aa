// The heap of device code: malloc, free, new and delete in kernels. The builder renames them
// (src/cuda-cpp/lower/early-edits.ts), because the process has functions of the same names.
//
// Memory outlives launches, and kernels of other images may free it. What is left is freed with the image.
#pragma once

#include "types.h"

extern "C" void* malloc(size_t) noexcept;
extern "C" void free(void*) noexcept;

/// CUDA's default for cudaLimitMallocHeapSize.
static constexpr size_t mr_heap_limit = size_t{8} << 20;

struct mr_heap_state;
/// In front of each allocation; it keeps the alignment of 16 bytes.
struct alignas(16) mr_heap_block {
  mr_heap_block *before, *after;
  mr_heap_state* owner;
  size_t bytes;
};
struct mr_heap_state {
  bool is_locked;
  size_t used;
  mr_heap_block* first;

  void lock() {
    while (__atomic_exchange_n(&is_locked, true, __ATOMIC_ACQUIRE)) mr_relax_core();
  }
  void unlock() { __atomic_store_n(&is_locked, false, __ATOMIC_RELEASE); }
};
static mr_heap_state mr_heap;

/// Null if the heap of this image has no room.
static __attribute__((noinline, unused)) void* mr_heap_malloc(size_t bytes) {
  mr_heap_state& heap = mr_heap;
  if (bytes == 0 || bytes > mr_heap_limit) return nullptr;
  const size_t whole = (bytes + 15) / 16 * 16 + sizeof(mr_heap_block);
  heap.lock();
  auto* block = heap.used + whole <= mr_heap_limit ? static_cast<mr_heap_block*>(malloc(whole)) : nullptr;
  if (block != nullptr) {
    *block = {nullptr, heap.first, &heap, whole};
    if (heap.first != nullptr) heap.first->before = block;
    heap.first = block;
    heap.used += whole;
  }
  heap.unlock();
  return block == nullptr ? nullptr : block + 1;
}
static __attribute__((noinline, unused)) void mr_heap_free(void* address) {
  if (address == nullptr) return;
  auto* block = static_cast<mr_heap_block*>(address) - 1;
  mr_heap_state& heap = *block->owner;
  heap.lock();
  (block->before == nullptr ? heap.first : block->before->after) = block->after;
  if (block->after != nullptr) block->after->before = block->before;
  heap.used -= block->bytes;
  heap.unlock();
  free(block);
}
static __attribute__((destructor)) void mr_free_heap() {
  while (mr_heap.first != nullptr) mr_heap_free(mr_heap.first + 1);
}

/// `new T` becomes `new (mr_in_heap{}) T`, which gives null instead of constructing if there is no room.
struct mr_in_heap {};
inline void* operator new(size_t bytes, mr_in_heap) noexcept {
  return mr_heap_malloc(bytes);
}
inline void* operator new[](size_t bytes, mr_in_heap) noexcept {
  return mr_heap_malloc(bytes);
}
inline void operator delete(void* address, mr_in_heap) noexcept {
  mr_heap_free(address);
}
inline void operator delete[](void* address, mr_in_heap) noexcept {
  mr_heap_free(address);
}

/// `delete x` becomes `mr_deleting{} * x`, because a factor is what `delete` takes.
struct mr_deleting {};
template <class T>
MR_INLINE void operator*(mr_deleting, T* object) {
  if (object == nullptr) return;
  object->~T();
  mr_heap_free(const_cast<void*>(static_cast<const volatile void*>(object)));
}
struct mr_deleting_array {};
template <class T>
MR_INLINE void operator*(mr_deleting_array, T* objects) {
  if (objects == nullptr) return;
  if constexpr (__has_trivial_destructor(T)) {
    mr_heap_free(objects);
  } else {
    // Before the objects is their number.
    const size_t count = reinterpret_cast<size_t*>(objects)[-1];
    for (size_t at = count; at-- > 0;) objects[at].~T();
    mr_heap_free(reinterpret_cast<char*>(objects) - (alignof(T) > sizeof(size_t) ? alignof(T) : sizeof(size_t)));
  }
}

/// What virtual destructors name. Kernels do not call it, because the builder rewrites their `delete`.
void operator delete(void* address, size_t) noexcept {
  mr_heap_free(address);
}
void operator delete(void* address) noexcept {
  mr_heap_free(address);
}
