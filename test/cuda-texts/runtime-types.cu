#include <cuda_runtime.h>

// The result of one step: the host's functions return it, and kernels only keep it.
struct Step {
  cudaError_t status;
  int items;
};

// What the host keeps of a device.
class Worker {
public:
  cudaStream_t stream;
  cudaEvent_t done;
  void run(cudaStream_t on);
};

extern cudaDeviceProp properties;
extern "C" void report(cudaError_t status);

extern "C" __global__ void count_items(const int *limits, int *codes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Step step = {cudaSuccess, limits[i]};
  if (step.items < 0) step.status = cudaErrorInvalidValue;
  codes[i] = static_cast<int>(step.status);
}
