// Fills with one 64-bit pattern, which the driver's memset functions (8, 16 and 32 bits) cannot.
// After a change run `node native/cuda/kernels/generate.mjs`: the library loads the PTX that it generates.
extern "C" __global__ void millrace_fill64(unsigned long long* dst, unsigned long long pattern, unsigned long long count) {
  const unsigned long long stride = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) dst[i] = pattern;
}
