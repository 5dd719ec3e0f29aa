// Exports a module's variables from an image: one table, which ends with a null name. The layout is that of
// native/cpu/module.h.
#pragma once

#include "types.h"

struct mr_variable {
  const char* name;
  void* address;
  unsigned long long bytes;
  unsigned is_const;
};

template <class T>
inline constexpr bool mr_is_const = false;
template <class T>
inline constexpr bool mr_is_const<const T> = true;

/// `path` is the C++ name.
#define MR_VARIABLE(name, path) {#name, (void*)__builtin_addressof(path), sizeof(path), mr_is_const<decltype(path)>},
#define MR_VARIABLES(...)                                       \
  extern "C" {                                                  \
  MR_EXPORT_DATA extern const mr_variable mr_variables[];       \
  const mr_variable mr_variables[] = {__VA_ARGS__{0, 0, 0, 0}}; \
  }
