// Compaction that keeps the order, with predicates from a table of function pointers or as template arguments, and runs of equal values.
#include <cuda_runtime.h>
#include <cstdio>
#include <iostream>

typedef bool (*predicate_t)(int value, int limit);
__device__ bool is_above(int value, int limit) { return value > limit; }
__device__ bool is_multiple(int value, int limit) { return limit != 0 && value % limit == 0; }
__device__ bool has_bits(int value, int limit) { return (value & limit) == limit; }
__device__ const predicate_t predicates[] = {is_above, is_multiple, &has_bits, nullptr};

// Kinds are places in the table.
struct Filter {
  enum Kind { ABOVE, MULTIPLE, BITS, ALL } kind;
  int limit;
  __device__ bool operator()(int value) const {
    switch (kind) {
      case ABOVE:
      case MULTIPLE:
      case BITS: {
        const predicate_t keep = predicates[kind];
        return keep(value, limit);
      }
      default:
        return true;
    }
  }
};

// The place of the thread's item among those of the block, and their number.
template <int THREADS>
__device__ int2 places(bool keeps) {
  __shared__ int of_warps[THREADS / 32 + 1];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned kept = __ballot_sync(0xffffffff, keeps);
  if (lane == 0) of_warps[warp + 1] = __popc(kept);
  if (threadIdx.x == 0) of_warps[0] = 0;
  __syncthreads();
  if (warp == 0) {
    int sum = lane <= THREADS / 32 ? of_warps[lane] : 0;
    for (const int d : {1, 2, 4, 8, 16}) {
      const int other = __shfl_up_sync(0xffffffff, sum, d);
      sum += lane >= d ? other : 0;
    }
    if (lane <= THREADS / 32) of_warps[lane] = sum;
  }
  __syncthreads();
  const int2 result = make_int2(of_warps[warp] + __popc(kept & ~(~0u << lane)), of_warps[THREADS / 32]);
  __syncthreads();
  return result;
}

template <int THREADS, typename Keep>
__device__ int compact(const int *in, int n, int *out, Keep keep) {
  int base = 0;
  for (int start = 0; start < n; start += THREADS) {
    const int i = start + threadIdx.x, value = i < n ? in[i] : 0;
    const bool keeps = i < n && keep(value);
    const int2 place = places<THREADS>(keeps);
    if (keeps) out[base + place.x] = value;
    base += place.y;
  }
  return base;
}

// A block filters one segment.
__global__ void filter_segments(const int *in, const int *segments, int *out, int *counts, const Filter *filters) {
  const int first = segments[blockIdx.x], length = segments[blockIdx.x + 1] - first;
  const Filter filter = filters[blockIdx.x];
  const int count = compact<96>(in + first, length, out + first, filter);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

template <predicate_t keep, int THREADS>
__global__ void filter_with(const int *in, int n, int limit, int *out, int *count) {
  const int kept = compact<THREADS>(in, n, out, [=](int value) -> bool { return keep(value, limit); });
  if (threadIdx.x == 0) *count = kept;
}

// Where runs of equal values begin, and how long they are.
__global__ void __maxnreg__(64) encode_runs(const int *in, int n, int *values, int *lengths, int *runs) {
  __shared__ int starts[1025];
  auto is_start = [&](int at) { return at == 0 || in[at] != in[at - 1]; };
  int base = 0;
  for (int start = 0; start < n; start += blockDim.x) {
    const int i = start + threadIdx.x;
    const bool begins = i < n && is_start(i);
    const int2 place = places<128>(begins);
    if (begins) values[base + place.x] = in[i], starts[base + place.x] = i;
    base += place.y;
  }
  if (threadIdx.x == 0) starts[base] = n, *runs = base;
  __syncthreads();
  for (int run = threadIdx.x; run < base; run += blockDim.x) lengths[run] = starts[run + 1] - starts[run];
}

int main() {
  const int n = 1000;
  int *memory;
  if (cudaMallocManaged(&memory, (2 * n + 1) * sizeof(int)) != cudaSuccess) return 1;
  for (int i = 0; i < n; i++) memory[i] = i * 37 % 101;
  filter_with<is_multiple, 128><<<1, 128>>>(memory, n, 5, memory + n, memory + 2 * n);
  cudaDeviceSynchronize();
  std::cout << memory[2 * n] << " of " << n << std::endl;
  cudaFree(memory);
}
