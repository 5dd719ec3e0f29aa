// Exports a module's variables from an image: one table, which ends with a null name.
#pragma once

#include "launch_abi.h"
#include "types.h"

template <class T>
inline constexpr bool mr_is_const = false;
template <class T>
inline constexpr bool mr_is_const<const T> = true;

/// `path` is the C++ name.
#define MR_VARIABLE(name, path) {#name, (void*)__builtin_addressof(path), sizeof(path), mr_is_const<decltype(path)>},
#define MR_VARIABLES(...)                                      \
  extern "C" {                                                 \
  MR_EXPORT_DATA extern const MrVariable mr_variables[];       \
  const MrVariable mr_variables[] = {__VA_ARGS__{0, 0, 0, 0}}; \
  }
