// Reductions of warps by CUB: a matrix row for each warp, and segments.
#include <cub/warp/warp_reduce.cuh>

__global__ void row_sums(const float *x, float *sums, int *largest, int columns) {
  using WarpReduce = cub::WarpReduce<float>;
  using WarpMax = cub::WarpReduce<int, 8>;
  __shared__ WarpReduce::TempStorage temp_storage[4];
  __shared__ WarpMax::TempStorage of_groups[16];
  int warp_id = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.x * 4 + warp_id;
  float sum = 0;
  for (int c = lane; c < columns; c += 32) sum += x[row * columns + c];
  float total = WarpReduce(temp_storage[warp_id]).Sum(sum);
  if (lane == 0) sums[row] = total;
  int group = threadIdx.x / 8;
  int most = WarpMax(of_groups[group]).Reduce((int)x[row * columns + lane], [](int a, int b) { return a > b ? a : b; });
  if (threadIdx.x % 8 == 0) largest[blockIdx.x * 16 + group] = most;
}

// A run of equal keys is a segment: its first lane gets the sum of the values.
__global__ void segments(const int *keys, const int *values, int *sums) {
  using WarpReduce = cub::WarpReduce<int>;
  __shared__ typename WarpReduce::TempStorage temp[2];
  int warp = threadIdx.x >> 5;
  bool is_head = threadIdx.x % 32 == 0 || keys[threadIdx.x] != keys[threadIdx.x - 1];
  int sum = WarpReduce(temp[warp]).HeadSegmentedSum(values[threadIdx.x], is_head);
  sums[threadIdx.x] = is_head ? sum : 0;
}
