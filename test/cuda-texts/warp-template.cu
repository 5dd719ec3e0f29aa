template <int WIDTH>
__device__ float sum_of_lanes(float v) {
  for (int by = WIDTH / 2; by > 0; by /= 2) v += __shfl_down_sync(0xffffffff, v, by, WIDTH);
  return v;
}

template <int WIDTH>
__global__ void lanes(const float *x, float *y) {
  float sum = sum_of_lanes<WIDTH>(x[threadIdx.x]);
  if (threadIdx.x % WIDTH == 0) y[threadIdx.x / WIDTH] = sum;
}
