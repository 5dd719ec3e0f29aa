// Softmax and cross entropy of each row with its gradient: a reduction that takes a function as a template argument.
#include <cfloat>
#include <cstdio>
#include <cstdlib>

constexpr int WARP = 32;

__device__ inline float warpReduceSum(float val) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset >>= 1) val += __shfl_xor_sync(0xFFFFFFFFu, val, offset);
  return val;
}
__device__ inline float warpReduceMax(float val) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset >>= 1) val = fmaxf(val, __shfl_xor_sync(0xFFFFFFFFu, val, offset));
  return val;
}

using reduction_func_t = float (*)(float);
template <reduction_func_t warp_reduction>
__device__ inline float blockReduce(float val, bool final_sync = false, float out_of_bounds = 0.0f) {
  __shared__ float shared_val[WARP];
  const int lane_id = threadIdx.x % WARP, warp_id = threadIdx.x / WARP, num_warps = blockDim.x / WARP;
  float warp_val = warp_reduction(val);
  if (lane_id == 0) { shared_val[warp_id] = warp_val; }
  __syncthreads();
  warp_val = (lane_id < num_warps) ? shared_val[lane_id] : out_of_bounds;
  float block_val = warp_reduction(warp_val);
  if (final_sync) { __syncthreads(); }
  return block_val;
}

struct SoftmaxParams {
  float Scale;
  float Offset;
};

__device__ SoftmaxParams prepare_softmax(const float *x, int V) {
  float thread_maxval = -INFINITY, thread_sumval = 0.0f;
  for (int i = (V + blockDim.x - 1) / blockDim.x + threadIdx.x - blockDim.x; i < V; i += blockDim.x) {
    if (i < 0) continue;
    float v = x[i], old_maxval = thread_maxval;
    thread_maxval = fmaxf(thread_maxval, v);
    thread_sumval *= expf((old_maxval - thread_maxval));
    thread_sumval += expf(v - thread_maxval);
  }
  float block_maxval = blockReduce<warpReduceMax>(thread_maxval, false, -FLT_MAX);
  thread_sumval *= expf(thread_maxval - block_maxval);
  float block_sumval = blockReduce<warpReduceSum>(thread_sumval);
  return SoftmaxParams{1.f / block_sumval, block_maxval};
}

template <bool WriteDLogits = true>
__global__ void __launch_bounds__(256, 2)
    fused_classifier(float *logits, float *losses, const float dloss, const int *targets, int V, int P) {
  const int idx = gridDim.x - (blockIdx.x + 1), ix = targets[idx];
  const SoftmaxParams sp = prepare_softmax(logits + idx * P, V);
  if (threadIdx.x == 0) losses[idx] -= logf(expf(logits[idx * P + ix] - sp.Offset) * sp.Scale);
  if constexpr (WriteDLogits) {
    __syncthreads();
    for (int i = threadIdx.x; i < V; i += blockDim.x) {
      const float prob = expf(logits[idx * P + i] - sp.Offset) * sp.Scale;
      const float indicator = (i == ix) ? 1.0f : 0.0f;
      logits[idx * P + i] = (prob - indicator) * dloss;
    }
  }
}

int main(int argc, char *argv[]) {
  const int B = 6, V = 900, P = 912;
  float *logits, *losses;
  int *targets;
  cudaMalloc((void **)&logits, B * P * sizeof(float));
  cudaMalloc((void **)&losses, B * sizeof(float));
  cudaMalloc((void **)&targets, B * sizeof(int));
  int kernel_num = argc > 1 ? atoi(argv[1]) : 1;
  switch (kernel_num) {
    case 1: fused_classifier<<<B, 256>>>(logits, losses, 1.0f / B, targets, V, P); break;
    case 2: fused_classifier<false><<<B, 256>>>(logits, losses, 1.0f / B, targets, V, P); break;
    default: printf("Invalid kernel number\n"); exit(1);
  }
  return 0;
}
