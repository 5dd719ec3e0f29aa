#include "stencil.cuh"
#include "common/broken.h"
__global__ void twice(float *y) { y[threadIdx.x] = doubled(y[threadIdx.x]); }
