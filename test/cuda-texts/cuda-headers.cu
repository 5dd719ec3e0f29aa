#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <device_functions.h>
#include <device_launch_parameters.h>
#include <math_functions.h>
#include <vector_functions.h>
#include <vector_types.h>
#include <math_constants.h>

extern "C" __global__ void cuda_headers(float4 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = make_float4(i, i * CUDART_PI_F, -CUDART_INF_F, __int_as_float(0x3f800000));
}
