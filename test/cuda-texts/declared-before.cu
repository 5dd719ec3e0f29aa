__global__ void squared(const float *in, float *out, int n);

static inline __device__ float sq(float v) { return v * v; }

__global__ void squared(const float *in, float *out, int n) {
  const int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) out[i] = sq(in[i]);
}
