// Searches in sorted arrays: the bounds of each thread's value, one value a warp with 32 probes at once, and a tree in the order of its levels.
#include <cuda_runtime.h>
#include <climits>
#include <cstddef>
#include <memory>
#include <vector>

#define DIVIDE_UP(a, b) (((a) + (b)-1) / (b))

enum Side { LEFT = 0, RIGHT = 1 };

template <Side side, typename T>
__device__ __forceinline__ int bound(const T *__restrict__ sorted, int n, T value) {
  int low = 0;
  for (int count = n; count > 0;) {
    const int half = count / 2;
    const T probe = __ldg(&sorted[low + half]);
    const bool goes_right = side == LEFT ? probe < value : !(value < probe);
    goes_right ? (low += half + 1, count -= half + 1) : (count = half);
  }
  return low;
}

template <typename T, int UNROLL>
__global__ void search_sorted(const T *sorted, int n, const T *__restrict__ values, int2 *__restrict__ found, int m) {
  int i = threadIdx.x + blockIdx.x * blockDim.x * UNROLL;
#pragma unroll UNROLL
  for (int k = 0; k < UNROLL; ++k, i += blockDim.x) {
    if (i >= m) break;
    const T value = values[i];
    found[i] = {bound<LEFT>(sorted, n, value), bound<RIGHT>(sorted, n, value)};
  }
}

// Each round divides the range by 33.
__global__ void search_by_warps(const unsigned *__restrict__ sorted, int n, const unsigned *__restrict__ values, int *__restrict__ found, int m) {
  const unsigned lane = threadIdx.x & 31u, warp = (threadIdx.x + blockIdx.x * blockDim.x) >> 5;
  if (warp >= m) return;
  const unsigned value = values[warp];
  int low = 0, high = n;
  while (high - low > 0) {
    const int step = DIVIDE_UP(high - low, 33), at = low + (int)(lane + 1) * step - 1;
    const unsigned smaller = __ballot_sync(~0u, at < high && sorted[at] < value);
    const int passed = __popc(smaller);
    low += passed * step;
    high = min(high, low + step - (low + step - 1 < high && passed < 32));
  }
  if (lane == 0) found[warp] = low;
}

struct Node {
  int key;
  short depth;
  unsigned char is_leaf : 1, unused : 7;
};
union Packed {
  Node node;
  unsigned long long bits;
  static_assert(sizeof(Node) == sizeof(unsigned long long), "read at once");
};

// A tree with the children of node k at 2k + 1 and 2k + 2.
__global__ void search_tree(const unsigned long long *tree, int nodes, const int *values, int *depths, int m) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= m) return;
  int at = 0, depth = -1;
  for (Packed here; at < nodes; at = 2 * at + 1 + (here.node.key < values[i])) {
    here.bits = __ldg(tree + at);
    if (here.node.key == values[i]) {
      depth = here.node.depth;
      break;
    }
    if (here.node.is_leaf) break;
  }
  depths[i] = depth;
}

int main() {
  const int n = 1 << 20, m = 4096;
  auto sorted = std::make_unique<double[]>(n);
  for (int i = 0; i < n; i++) sorted[i] = i / 3;
  double *d_sorted, *d_values;
  int2 *d_found;
  cudaMalloc(&d_sorted, n * sizeof(double));
  cudaMalloc(&d_values, m * sizeof(double));
  cudaMalloc(&d_found, m * sizeof(int2));
  cudaMemcpy(d_sorted, sorted.get(), n * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemcpy(d_values, sorted.get() + 999, m * sizeof(double), cudaMemcpyHostToDevice);
  search_sorted<double, 2><<<DIVIDE_UP(m, 512), 256>>>(d_sorted, n, d_values, d_found, m);
  std::vector<int2> found(m);
  cudaMemcpy(found.data(), d_found, m * sizeof(int2), cudaMemcpyDeviceToHost);
  return found[0].x == 999 ? 0 : 1;
}
