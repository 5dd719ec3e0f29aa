// Shortest paths from one source a block: lists of nodes in dynamic shared memory, distances and predecessors in one word of 64 bits.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <limits>
#include <queue>
#include <stdexcept>
#include <string>

typedef unsigned long long int label_t;
typedef struct {
  const int *row;
  const uint2 *arc;  // the node that the arc leads to, and its length
  int nodes;
} weighted_graph;

inline void check(cudaError_t code, const char *file, int line) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + " " + cudaGetErrorString(code));
}
#define checkCuda(code) check((code), __FILE__, __LINE__)

#define PACK(distance, node) ((label_t)(distance) << 32 | (unsigned)(node))
static const label_t UNREACHED = ~0ull;

__device__ inline bool set_bit(unsigned *bits, int at) {
  const unsigned bit = 1u << (at & 31);
  return !(atomicOr(bits + (at >> 5), bit) & bit);
}
__device__ inline void clear_bit(unsigned *bits, int at) { atomicAnd(bits + (at >> 5), ~(1u << (at & 31))); }

__global__ void sssp(weighted_graph g, const int *sources, label_t *all_labels, int *finished) {
  extern __shared__ int pool[];
  __shared__ volatile int sizes[2];
  int *lists[] = {pool, pool + g.nodes};
  unsigned *const queued = reinterpret_cast<unsigned *>(lists[1] + g.nodes);
  label_t *const labels = all_labels + static_cast<size_t>(blockIdx.x) * g.nodes;
  const int source = sources[blockIdx.x];

  for (int i = threadIdx.x; i < g.nodes; i += blockDim.x) labels[i] = i == source ? PACK(0, source) : UNREACHED;
  for (int i = threadIdx.x; i < (g.nodes + 31) / 32; i += blockDim.x) queued[i] = 0;
  if (threadIdx.x == 0) {
    lists[0][0] = source;
    sizes[0] = 1;
    sizes[1] = 0;
  }
  __syncthreads();

  int side = 0;
  while (sizes[side] > 0) {
    const int size = sizes[side];
    int *const current = lists[side], *const next = lists[side ^ 1];
    for (int at = threadIdx.x; at < size; at += blockDim.x) {
      const int from = current[at];
      // Cleared before the label is read: a later change of the label queues the node again.
      clear_bit(queued, from);
      __threadfence_block();
      const unsigned distance = *(volatile label_t *)(labels + from) >> 32;
      for (int e = g.row[from], end = g.row[from + 1]; e != end; ++e) {
        const uint2 arc = g.arc[e];
        const label_t offer = PACK(distance + arc.y, from);
        if (atomicMin(labels + arc.x, offer) <= offer) continue;
        __threadfence_block();
        if (set_bit(queued, arc.x)) next[atomicAdd((int *)&sizes[side ^ 1], 1)] = arc.x;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) sizes[side] = 0;
    side ^= 1;
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(finished, 1);
}

// The same on the host.
static void dijkstra(const weighted_graph &g, int source, label_t *labels) {
  typedef std::pair<unsigned, int> entry;
  std::priority_queue<entry, std::vector<entry>, std::greater<entry>> open;
  for (int i = 0; i < g.nodes; i++) labels[i] = std::numeric_limits<label_t>::max();
  labels[source] = PACK(0, source);
  open.push({0, source});
  while (!open.empty()) {
    auto [distance, from] = open.top();
    open.pop();
    for (int e = g.row[from]; e < g.row[from + 1]; e++) {
      label_t offer = PACK(distance + g.arc[e].y, from);
      if (offer < labels[g.arc[e].x]) labels[g.arc[e].x] = offer, open.push({distance + g.arc[e].y, (int)g.arc[e].x});
    }
  }
}

int main() try {
  const int nodes = 512;
  std::vector<int> row(nodes + 1);
  std::vector<uint2> arc;
  for (int i = 0; i < nodes; row[++i] = (int)arc.size())
    for (int k = 1; k < 4; k++) arc.push_back(make_uint2((i * k + 7) % nodes, 1 + (i ^ k) % 13));
  weighted_graph g{row.data(), arc.data(), nodes}, device = g;
  std::vector<label_t> expected(nodes), found(nodes);
  dijkstra(g, 0, expected.data());
  int *d_source;
  label_t *d_labels;
  checkCuda(cudaMalloc((void **)&device.row, row.size() * sizeof(int)));
  checkCuda(cudaMalloc((void **)&device.arc, arc.size() * sizeof(uint2)));
  checkCuda(cudaMalloc(&d_source, 2 * sizeof(int)));
  checkCuda(cudaMalloc(&d_labels, nodes * sizeof(label_t)));
  checkCuda(cudaMemset(d_source, 0, 2 * sizeof(int)));
  checkCuda(cudaMemcpy((void *)device.row, row.data(), row.size() * sizeof(int), cudaMemcpyHostToDevice));
  checkCuda(cudaMemcpy((void *)device.arc, arc.data(), arc.size() * sizeof(uint2), cudaMemcpyHostToDevice));
  sssp<<<1, 128, (2 * nodes + (nodes + 31) / 32) * sizeof(int)>>>(device, d_source, d_labels, d_source + 1);
  checkCuda(cudaMemcpy(found.data(), d_labels, nodes * sizeof(label_t), cudaMemcpyDeviceToHost));
  return found == expected ? 0 : 1;
} catch (const std::exception &error) {
  fputs(error.what(), stderr);
  return 2;
}
