// Which memory of the running thread an address is in: shared memory of its block, or local memory.
#pragma once

#include "kernel_exports.h"

/// Of the pool thread, once it has asked.
MR_OF_THREAD MrSpaces mr_spaces;

static __attribute__((noinline)) const MrSpaces& mr_spaces_here() {
  // Who runs the blocks of a GPU, as the driver for tests does, knows no spaces.
  if (mr_spaces.variables == nullptr && mr_launch_of_block->find_spaces != nullptr) {
    mr_need_stack();
    mr_launch_of_block->find_spaces(mr_launch_of_block->run, &mr_spaces);
  }
  return mr_spaces;
}
static MR_INLINE bool mr_is_in(const void* address, const char* first, unsigned long long bytes) {
  return static_cast<unsigned long long>(static_cast<const char*>(address) - first) < bytes;
}
static inline bool mr_is_dynamic(const void* address) {
  return mr_is_in(address, mr_launch_of_block->dynamic_shared, mr_launch_of_block->shared_bytes);
}
static __attribute__((noinline)) bool mr_is_on_stacks(const void* address) {
  if (mr_launch_of_block->is_on_stacks == nullptr) return false;
  mr_need_stack();
  return mr_launch_of_block->is_on_stacks(mr_launch_of_block->run, address);
}
static MR_INLINE bool mr_is_shared(const void* address) {
  const MrSpaces& spaces = mr_spaces_here();
  return mr_is_in(address, spaces.variables, spaces.variable_bytes) || mr_is_dynamic(address);
}
/// The stack, and the stacks of threads that may wait.
static MR_INLINE bool mr_is_local(const void* address) {
  const MrSpaces& spaces = mr_spaces_here();
  return mr_is_in(address, spaces.stack, spaces.stack_bytes) || mr_is_on_stacks(address);
}
