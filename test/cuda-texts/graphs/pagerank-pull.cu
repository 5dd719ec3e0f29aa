// One step of PageRank on the incoming edges of each node: several lanes a node, and the change of all ranks by atomics on the bits of floats.
#include <cuda_runtime.h>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <vector>

#ifndef LANES_PER_NODE
#define LANES_PER_NODE 8
#endif
#define FULL_MASK 0xffffffffu

template <typename Real>
struct PullGraph {
  const int *__restrict__ first;
  const int *__restrict__ source;
  const int *__restrict__ out_degree;
  int nodes;
};

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
  template <typename T>
  static constexpr __device__ T identity() {
    return T(0);
  }
};
struct Largest {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
  template <typename T>
  static constexpr __device__ T identity() {
    return static_cast<T>(-FLT_MAX);
  }
};

// For floats that are not negative: their bits have the order of the numbers.
__device__ static inline float atomicMax(float *address, float value) {
  return __int_as_float(atomicMax(reinterpret_cast<int *>(address), __float_as_int(value)));
}
__device__ static inline double atomicMax(double *address, double value) {
  auto *bits = reinterpret_cast<unsigned long long *>(address);
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    if (__longlong_as_double(assumed) >= value) break;
    old = atomicCAS(bits, assumed, __double_as_longlong(value));
  } while (assumed != old);
  return __longlong_as_double(old);
}

template <int WIDTH, typename T, class Operator>
__device__ __forceinline__ T lanes_reduce(T value, Operator op) {
#pragma unroll
  for (int offset = WIDTH >> 1; offset > 0; offset >>= 1) value = op(value, __shfl_xor_sync(FULL_MASK, value, offset, WIDTH));
  return value;
}

template <int THREADS, typename T, class Operator>
__device__ T block_reduce(T value, Operator op = Operator()) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps");
  static __shared__ T of_warps[THREADS / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  value = lanes_reduce<32>(value, op);
  if (!lane) of_warps[warp] = value;
  __syncthreads();
  value = threadIdx.x < THREADS / 32 ? of_warps[lane] : Operator::template identity<T>();
  if (!warp) value = lanes_reduce<32>(value, op);
  return value;
}

template <typename Real, int THREADS>
__global__ void pagerank_pull(const PullGraph<Real> graph, const Real *__restrict__ rank, Real *__restrict__ next, const Real damping, const Real teleport,
                              Real *change, Real *total) {
  constexpr int NODES_PER_BLOCK = THREADS / LANES_PER_NODE;
  const int node = blockIdx.x * NODES_PER_BLOCK + threadIdx.x / LANES_PER_NODE, lane = threadIdx.x % LANES_PER_NODE;
  Real sum = 0, moved = 0, mine = 0;
  if (node < graph.nodes)
    for (int at = graph.first[node] + lane; at < graph.first[node + 1]; at += LANES_PER_NODE) {
      const int from = __ldg(graph.source + at);
      sum += __ldg(rank + from) / static_cast<Real>(graph.out_degree[from]);
    }
  sum = lanes_reduce<LANES_PER_NODE>(sum, Sum());
  if (node < graph.nodes && lane == 0) {
    mine = fma(damping, sum, teleport);
    moved = std::abs(mine - rank[node]);
    next[node] = mine;
  }
  const Real most = block_reduce<THREADS, Real, Largest>(moved);
  __syncthreads();
  const Real all = block_reduce<THREADS>(mine, Sum{});
  if (threadIdx.x == 0) {
    atomicMax(change, most);
    atomicAdd(total, all);
  }
}

template <typename Real>
static void iterate(PullGraph<Real> graph, Real *rank, Real *next, Real *sums, int steps) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start);
  const int blocks = (graph.nodes * LANES_PER_NODE + 255) / 256;
  for (int step = 0; step < steps; step++, std::swap(rank, next))
    pagerank_pull<Real, 256><<<blocks, 256>>>(graph, rank, next, Real(0.85), Real(0.15) / graph.nodes, sums, sums + 1);
  cudaEventRecord(stop);
  cudaEventSynchronize(stop);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, start, stop);
  printf("%d steps: %.3f ms\n", steps, milliseconds);
}

int main() {
  int *ints;
  float *floats;
  cudaMalloc((void **)&ints, 5 << 12);
  cudaMalloc((void **)&floats, 5 << 12);
  cudaMemset(ints, 0, 5 << 12);
  PullGraph<float> graph{ints, ints, ints, 1024};
  iterate(graph, floats, floats + 1024, floats + 2048, 10);
  return cudaDeviceSynchronize();
}
