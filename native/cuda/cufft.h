// Loads cuFFT, NVIDIA's library of Fourier transforms, if it is installed. Thread: any; searched for once.
#pragma once

#include <cstddef>

#include "cuda/driver_types.h"
#include "hal/library_plan.h"
#include "hal/status.h"

namespace millrace::cuda {

/// A plan.
using CufftHandle = int;

enum CufftCode : int {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_NOT_SUPPORTED = 16,
};

inline constexpr int kCufftForward = -1;
inline constexpr int kCufftInverse = 1;
/// From complex to complex, from real to complex, from complex to real, for f32 and then for f64.
inline constexpr int kCufftTypes[2][3] = {{0x29, 0x2a, 0x2c}, {0x69, 0x6a, 0x6c}};

struct CufftTable {
#define MR_CUFFT(name, params) CufftCode(*name) params = nullptr;
#include "cuda/cufft_functions.def"
#undef MR_CUFFT
};

struct CufftLibrary {
  CufftTable functions;
  hal::LibraryInfo info;
};

/// Null when there is none. If MILLRACE_CUFFT names one, no other is searched for.
const CufftLibrary* OpenCufft();

/// Whether there is a file that OpenCufft would try. Opens nothing, and takes a millisecond when it is first called.
bool HasCufft();

/// The failure of one of its calls, by the name of its status.
Status CufftFailure(CufftCode code);

}  // namespace millrace::cuda
