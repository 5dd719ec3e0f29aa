// Arrays of a thread that it reads and writes as vectors, in kernels whose threads wait.

__device__ int lane_sum(int value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  return value;
}

template <typename T>
__device__ T pick(const T* from, int at) {
  alignas(16) T all[5], rest[4];
  char odd = static_cast<char>(at);
  struct alignas(4) Quad {
    char parts[2];
    short rest[1];
  } quad[2];
  memcpy(quad, from, sizeof(quad));
  __align__(16) T kept[2][4] = {};
  *reinterpret_cast<int4*>(all) = *reinterpret_cast<const int4*>(from);
  *reinterpret_cast<int4*>(rest) = *reinterpret_cast<const int4*>(from + 4);
  *reinterpret_cast<int4*>(kept[1]) = *reinterpret_cast<int4*>(all);
  const T sum = lane_sum(all[at]);
  return sum + rest[(odd + 1) % 4] + kept[1][3] + kept[0][odd] + quad[1].parts[0] - from[1] + sizeof(quad) - 8;
}

/// The threads of a warp wait in one branch only.
__global__ void as_coroutines(const int* in, int* out, int limit) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_odd = i % 2 == 1;
  alignas(16) int own[4] = {i, i + 1, i + 2, i + 3};
  if (blockIdx.x < limit) own[3] += pick(in + 8 * i, i % 4);
  reinterpret_cast<int4*>(out)[i] = *reinterpret_cast<int4*>(own);
  if (is_odd) out[4 * i] = -1;
}

/// The threads wait at barriers that all reach.
__global__ void as_loops(const float* in, float* out) {
  __shared__ float4 shared[64];
  const int i = threadIdx.x;
  alignas(16) float own[6];
  *reinterpret_cast<float4*>(own) = reinterpret_cast<const float4*>(in)[i];
  own[4] = own[0] + own[1];
  own[5] = own[2] + own[3];
  shared[i] = *reinterpret_cast<float4*>(own);
  __syncthreads();
  *reinterpret_cast<float4*>(own) = shared[blockDim.x - 1 - i];
  reinterpret_cast<float4*>(out)[i] = make_float4(own[0], own[3], own[4], own[5]);
}
