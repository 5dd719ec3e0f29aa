// A kernel template for functions of which some wait. Only the host names its instances.
using reduction = int (*)(int value);

__device__ int largest(int value) {
  for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(0xffffffff, value, step));
  return value;
}

__device__ int itself(int value) { return value; }

template <reduction reduce>
__global__ void reduced(const int* in, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = reduce(in[i]) * 2 + 1;
}

template <reduction reduce>
void run(const int* in, int* out) {
  reduced<reduce><<<3, 32>>>(in, out);
}

int main() {
  run<largest>(nullptr, nullptr);
  run<itself>(nullptr, nullptr);
}
