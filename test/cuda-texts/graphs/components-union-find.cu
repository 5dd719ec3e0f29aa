// Connected components of a list of edges: trees that threads of all blocks join by compare-and-swap, then a root for each node.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <chrono>
#include <iostream>
#include <utility>
#include <vector>

namespace cg = cooperative_groups;

namespace components {

struct Edge {
  int from, to;
};
enum class Phase : int { init, hook, flatten };

/// Parents are never larger than their children, so a shorter path that another thread wrote before stays correct.
__device__ __forceinline__ int find_root(volatile int *parent, int node) {
  for (int up; (up = parent[node]) != node;) {
    const int above = parent[up];
    if (above != up) parent[node] = above;
    node = above;
  }
  return node;
}

__device__ void join(int *parent, Edge edge) {
  int a = find_root(parent, edge.from), b = find_root(parent, edge.to);
  while (a != b) {
    const int high = a > b ? a : b, low = a ^ b ^ high;
    const int seen = atomicCAS(parent + high, high, low);
    if (seen == high) break;
    a = find_root(parent, seen), b = low;
  }
}

template <Phase P>
__device__ void pass(cg::grid_group grid, const Edge *edges, int count, int *parent, int nodes) {
  const int first = static_cast<int>(grid.thread_rank()), stride = static_cast<int>(grid.size());
  if constexpr (P == Phase::hook) {
    for (int at = first; at < count; at += stride) join(parent, edges[at]);
  } else {
    for (int node = first; node < nodes; node += stride) parent[node] = P == Phase::init ? node : find_root(parent, node);
  }
  grid.sync();
}

}  // namespace components

using components::Edge;
using components::Phase;

extern "C" __global__ void __launch_bounds__(64)
label_components(const Edge *__restrict__ edges, int edge_count, int *parent, int *sizes, int *largest, int nodes) {
  cg::grid_group grid = cg::this_grid();
  components::pass<Phase::init>(grid, edges, edge_count, parent, nodes);
  components::pass<Phase::hook>(grid, edges, edge_count, parent, nodes);
  components::pass<Phase::flatten>(grid, edges, edge_count, parent, nodes);
  for (unsigned node = grid.thread_rank(); node < nodes; node += grid.size()) {
    const int members = atomicAdd(&sizes[parent[node]], 1) + 1;
    atomicMax(largest, members);
  }
}

class Stopwatch {
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

 public:
  double milliseconds() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }
};

int main() {
  const int nodes = 1 << 18;
  std::vector<Edge> edges;
  for (int i = 0; i + 3 < nodes; i++)
    if (i % 5) edges.push_back({i, i + 3});
  Edge *d_edges;
  int *d_ints, count = (int)edges.size(), n = nodes;
  cudaMalloc(&d_edges, count * sizeof(Edge));
  cudaMalloc(&d_ints, (2 * nodes + 1) * sizeof(int));
  cudaMemset(d_ints, 0, (2 * nodes + 1) * sizeof(int));
  cudaMemcpy(d_edges, edges.data(), count * sizeof(Edge), cudaMemcpyHostToDevice);
  int *sizes = d_ints + nodes, *largest = d_ints + 2 * nodes;
  void *arguments[] = {&d_edges, &count, &d_ints, &sizes, &largest, &n};
  Stopwatch watch;
  cudaLaunchCooperativeKernel((void *)label_components, dim3(16), dim3(64), arguments);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int most = 0;
  cudaMemcpy(&most, largest, sizeof(int), cudaMemcpyDeviceToHost);
  std::cout << "largest component: " << most << " nodes, " << watch.milliseconds() << " ms\n";
}
