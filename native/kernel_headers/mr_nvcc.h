// The builder puts this header in front of kernel sources for nvcc. With the system's headers, which nvcc finds, it
// declares what mr_types.h declares for NVRTC.
#pragma once

#include <limits.h>
#include <math.h>
#include <stdint.h>

typedef unsigned char uchar;
