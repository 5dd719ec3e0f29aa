// Address spaces of pointers: `__isShared`, `__cvta_generic_to_shared` and the like. The builder includes this header
// if the source names one of them, and defines mr_is_constant behind the source.
//
// An address in shared memory is an offset that fits into 32 bits, as on a GPU, and has the alignment of the pointer.
// In the other spaces it is the pointer.
#pragma once

#include "memory_spaces.h"

/// Whether a `__constant__` variable of the source contains the address.
static bool mr_is_constant(const void* address);
template <class T>
MR_INLINE bool mr_contains(const T& variable, const void* address) {
  const auto* first = reinterpret_cast<const char*>(__builtin_addressof(variable));
  return static_cast<size_t>(static_cast<const char*>(address) - first) < sizeof(T);
}

inline unsigned __isShared(const void* address) {
  return mr_is_shared(address);
}
inline unsigned __isConstant(const void* address) {
  return mr_is_constant(address);
}
inline unsigned __isLocal(const void* address) {
  return mr_is_local(address);
}
inline unsigned __isGlobal(const void* address) {
  return !__isShared(address) && !__isConstant(address) && !__isLocal(address);
}

/// Offsets keep alignments up to this one.
static constexpr size_t mr_shared_alignment = 1024;
/// Where the offsets of `__shared__` variables count from.
static MR_INLINE const char* mr_shared_base(const MrSpaces& spaces) {
  return spaces.variables - reinterpret_cast<size_t>(spaces.variables) % mr_shared_alignment;
}
/// The offset of the dynamic shared memory, behind the variables.
static MR_INLINE size_t mr_dynamic_offset(const MrSpaces& spaces) {
  const size_t end = static_cast<size_t>(spaces.variables - mr_shared_base(spaces)) + spaces.variable_bytes;
  return (end / mr_shared_alignment + 1) * mr_shared_alignment;
}
inline size_t __cvta_generic_to_shared(const void* address) {
  const MrSpaces& spaces = mr_spaces_here();
  const char* const at = static_cast<const char*>(address);
  // Also the address behind the variables.
  if (mr_is_in(at, spaces.variables, spaces.variable_bytes + 1)) {
    return static_cast<size_t>(at - mr_shared_base(spaces));
  }
  return mr_dynamic_offset(spaces) + static_cast<size_t>(at - mr_launch_of_block->dynamic_shared);
}
inline void* __cvta_shared_to_generic(size_t address) {
  const MrSpaces& spaces = mr_spaces_here();
  const size_t dynamic = mr_dynamic_offset(spaces);
  if (address < dynamic) return const_cast<char*>(mr_shared_base(spaces) + address);
  return mr_launch_of_block->dynamic_shared + (address - dynamic);
}
#define MR_CONVERSIONS(space)                                                                                \
  inline size_t __cvta_generic_to_##space(const void* address) { return reinterpret_cast<size_t>(address); } \
  inline void* __cvta_##space##_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
MR_CONVERSIONS(global)
MR_CONVERSIONS(local)
MR_CONVERSIONS(constant)
#undef MR_CONVERSIONS
