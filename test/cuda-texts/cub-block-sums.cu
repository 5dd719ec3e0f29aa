// A sum of blocks by CUB, with a guard and an operator, as its manual shows it.
#include <cub/cub.cuh>
#include <cstdio>

template <typename T, int BLOCK_THREADS, cub::BlockReduceAlgorithm ALGORITHM>
__global__ void block_sum_kernel(const T *in, T *out, int n) {
  typedef cub::BlockReduce<T, BLOCK_THREADS, ALGORITHM> BlockReduce;
  __shared__ typename BlockReduce::TempStorage temp_storage;
  int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
  T sum = BlockReduce(temp_storage).Sum(i < n ? in[i] : T(0));
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

template <int BLOCK_X, int BLOCK_Y>
__device__ int max_of_block(int value, int valid) {
  using BlockReduceInt = cub::BlockReduce<int, BLOCK_X, cub::BLOCK_REDUCE_RAKING, BLOCK_Y>;
  __shared__ typename BlockReduceInt::TempStorage storage;
  struct Larger {
    __device__ int operator()(const int &a, const int &b) const { return a > b ? a : b; }
  };
  return BlockReduceInt(storage).Reduce(value, Larger(), valid);
}

// The alias has the function's name.
__device__ void BlockReduce(int &value) {
  using BlockReduce = cub::BlockReduce<int, 128>;
  __shared__ typename BlockReduce::TempStorage temp_storage;
  value = BlockReduce(temp_storage).Sum(value);
}

struct Extent {
  float low, high;
};
struct Widen {
  __device__ __forceinline__ Extent operator()(const Extent &a, const Extent &b) const {
    return Extent{fminf(a.low, b.low), fmaxf(a.high, b.high)};
  }
};

__global__ void block_sums(const int *in, int *sums, float *extents, int n) {
  typedef cub::BlockReduce<int, 128> BlockReduceT;
  typedef cub::BlockReduce<Extent, 128> BlockExtent;
  __shared__ union {
    typename BlockReduceT::TempStorage reduce;
    typename BlockExtent::TempStorage extent;
  } temp;
  int tid = threadIdx.x;
  int items[3];
  for (int k = 0; k < 3; k++) items[k] = in[(blockIdx.x * 128 + tid) * 3 + k];
  int aggregate = BlockReduceT(temp.reduce).Sum(items);
  __syncthreads();
  Extent own = {(float)items[0], (float)items[2]};
  Extent all = BlockExtent(temp.extent).Reduce(own, Widen{});
  int checked = items[0] + items[1] + items[2];
  BlockReduce(checked);
  if (tid == 0 && checked != aggregate) aggregate = -1;
  __shared__ alignas(alignof(float4)) int shifted[128];
  shifted[127 - tid] = items[0];
  __syncthreads();
  items[0] = shifted[127 - tid];
  int largest = max_of_block<64, 2>(items[0], 100);
  if (tid == 0) {
    sums[2 * blockIdx.x] = aggregate;
    sums[2 * blockIdx.x + 1] = largest;
    extents[2 * blockIdx.x] = all.low;
    extents[2 * blockIdx.x + 1] = all.high;
  }
}

int main() {
  int *in, *out;
  cudaMalloc(&in, 1024 * sizeof(int));
  cudaMalloc(&out, sizeof(int));
  block_sum_kernel<int, 128, cub::BLOCK_REDUCE_WARP_REDUCTIONS><<<8, 128>>>(in, out, 1024);
  size_t bytes = 0;
  cub::DeviceReduce::Sum(nullptr, bytes, in, out, 1024);
  printf("%zu\n", bytes);
  return 0;
}
