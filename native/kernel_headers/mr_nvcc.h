// In front of kernel sources for nvcc, which brings the system's headers: what NVRTC gets from mr_types.h.
#pragma once

#include <limits.h>
#include <math.h>
#include <stdint.h>

typedef unsigned char uchar;
