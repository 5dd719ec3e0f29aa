// Levels of a breadth-first search, from the frontier outward with a queue of each block in shared memory, and from unvisited nodes inward with bit maps.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK_CUDA(call)                                                                                  \
  do {                                                                                                    \
    cudaError_t status_ = (call);                                                                         \
    if (status_ != cudaSuccess) {                                                                         \
      fprintf(stderr, "%s failed at %s:%d: %s\n", #call, __FILE__, __LINE__, cudaGetErrorString(status_)); \
      exit(EXIT_FAILURE);                                                                                 \
    }                                                                                                     \
  } while (0)

#define UNVISITED (-1)
#define BITS_OF_WORD 32

struct CsrGraph {
  const int *offsets;
  const int *targets;
  int nodes;
  __device__ __forceinline__ int2 edges_of(int node) const { return make_int2(__ldg(offsets + node), __ldg(offsets + node + 1)); }
};

// What does not fit goes to the queue of the grid at once.
template <int CAPACITY>
struct BlockQueue {
  int tail;
  int base;
  int items[CAPACITY];

  __device__ void reset() {
    if (threadIdx.x == 0) tail = 0;
    __syncthreads();
  }
  __device__ void push(int node, int *global_items, int *global_tail) {
    const int at = atomicAdd(&tail, 1);
    if (at < CAPACITY)
      items[at] = node;
    else
      global_items[atomicAdd(global_tail, 1)] = node;
  }
  __device__ void flush(int *global_items, int *global_tail) {
    __syncthreads();
    const int count = min(tail, CAPACITY);
    if (threadIdx.x == 0) base = atomicAdd(global_tail, count);
    __syncthreads();
    for (int at = threadIdx.x; at < count; at += blockDim.x) global_items[base + at] = items[at];
  }
};

__global__ void __launch_bounds__(128)
bfs_top_down(const CsrGraph graph, const int *__restrict__ frontier, const int frontier_size, int *levels, int *next, int *next_size, int depth) {
  __shared__ BlockQueue<48> queue;
  queue.reset();
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < frontier_size; at += gridDim.x * blockDim.x) {
    const int2 range = graph.edges_of(frontier[at]);
    for (int edge = range.x; edge < range.y; ++edge) {
      const int to = __ldg(&graph.targets[edge]);
      if (levels[to] != UNVISITED) continue;
      if (atomicCAS(&levels[to], UNVISITED, depth) == UNVISITED) queue.push(to, next, next_size);
    }
  }
  queue.flush(next, next_size);
}

__device__ inline bool test_bit(const unsigned *bits, int at) { return bits[at / BITS_OF_WORD] >> (at % BITS_OF_WORD) & 1u; }

__global__ void bfs_bottom_up(CsrGraph graph, const unsigned *__restrict__ frontier, unsigned *__restrict__ next, int *levels, int depth, unsigned *found) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  bool joins = false;
  if (node < graph.nodes && levels[node] == UNVISITED) {
    for (int edge = graph.offsets[node], end = graph.offsets[node + 1]; edge < end && !joins; edge++) joins = test_bit(frontier, graph.targets[edge]);
    if (joins) levels[node] = depth;
  }
  const unsigned word = __ballot_sync(0xffffffffu, joins);
  if (threadIdx.x % warpSize == 0 && node < graph.nodes) {
    next[node / BITS_OF_WORD] = word;
    if (word) atomicAdd(found, (unsigned)__popc(word));
  }
}

int main(int argc, char **argv) {
  const int nodes = argc > 1 ? atoi(argv[1]) : 1 << 16, degree = 4;
  std::vector<int> offsets(nodes + 1), targets(size_t(nodes) * degree), levels(nodes, UNVISITED);
  for (int i = 0; i <= nodes; i++) offsets[i] = i * degree;
  for (size_t i = 0; i < targets.size(); i++) targets[i] = rand() % nodes;
  levels[0] = 0;
  int *d_offsets, *d_targets, *d_levels, *d_queue[2], *d_size, size = 1, zero = 0;
  CHECK_CUDA(cudaMalloc(&d_offsets, offsets.size() * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&d_targets, targets.size() * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&d_levels, nodes * sizeof(int)));
  for (int *&queue : d_queue) CHECK_CUDA(cudaMalloc(&queue, nodes * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&d_size, sizeof(int)));
  CHECK_CUDA(cudaMemcpy(d_offsets, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(d_targets, targets.data(), targets.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(d_levels, levels.data(), nodes * sizeof(int), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemset(d_queue[0], 0, sizeof(int)));
  const CsrGraph graph = {d_offsets, d_targets, nodes};
  for (int depth = 1; size > 0; depth++) {
    CHECK_CUDA(cudaMemcpy(d_size, &zero, sizeof(int), cudaMemcpyHostToDevice));
    bfs_top_down<<<(size + 127) / 128, 128>>>(graph, d_queue[(depth + 1) % 2], size, d_levels, d_queue[depth % 2], d_size, depth);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(&size, d_size, sizeof(int), cudaMemcpyDeviceToHost));
    printf("level %d: %d nodes\n", depth, size);
  }
  return 0;
}
