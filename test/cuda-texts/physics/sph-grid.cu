// Density of particles that a grid of cells sorts: keys of cells, the first particle of each cell, and sums over 27 cells, with parameters in constant memory.
#include <cuda_runtime.h>
#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <numeric>
#include <vector>

struct SimulationParameters {
  uint3 grid;
  float3 origin, cell;
  float radius, mass, stiffness, rest;
};
__constant__ SimulationParameters params = {{8, 4, 4}, {-1.0f, -0.5f, -0.5f}, {0.25f, 0.25f, 0.25f}, 0.25f, 0.125f, 3.0f, 10.0f};

#ifndef uint
using uint = unsigned int;
#endif
#define IN_GLOBAL_INDEX(n)                               \
  const uint index = blockIdx.x * blockDim.x + threadIdx.x; \
  if (index >= (n)) return

inline __host__ __device__ float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
inline __host__ __device__ float3 operator/(float3 a, float3 b) { return make_float3(a.x / b.x, a.y / b.y, a.z / b.z); }
inline __host__ __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline __host__ __device__ int3 operator+(int3 a, int3 b) { return make_int3(a.x + b.x, a.y + b.y, a.z + b.z); }
inline __host__ __device__ float3 xyz(float4 v) { return {v.x, v.y, v.z}; }

__device__ int3 cell_at(float3 p) {
  const float3 at = (p - params.origin) / params.cell;
  return make_int3(floorf(at.x), floorf(at.y), floorf(at.z));
}
// The sides of the grid are powers of two: cells beyond an edge are those at the opposite one.
__device__ uint key_of(int3 at) {
  at.x &= params.grid.x - 1, at.y &= params.grid.y - 1, at.z &= params.grid.z - 1;
  return __umul24(__umul24(at.z, params.grid.y), params.grid.x) + __umul24(at.y, params.grid.x) + at.x;
}

__global__ void compute_keys(uint *keys, uint *indices, const float4 *positions, uint n) {
  IN_GLOBAL_INDEX(n);
  volatile float4 p = positions[index];
  keys[index] = key_of(cell_at(make_float3(p.x, p.y, p.z)));
  indices[index] = index;
}

// Each thread compares its key with that of the thread before it.
__global__ void find_cells(uint2 *ranges, float4 *sorted, const uint *keys, const uint *indices, const float4 *positions, uint n) {
  extern __shared__ uint shared_keys[];  // one more than the threads of a block
  const uint index = blockIdx.x * blockDim.x + threadIdx.x;
  uint key;
  if (index < n) {
    key = keys[index];
    shared_keys[threadIdx.x + 1] = key;
    if (index > 0 && threadIdx.x == 0) shared_keys[0] = keys[index - 1];
  }
  __syncthreads();
  if (index < n) {
    if (index == 0 || key != shared_keys[threadIdx.x]) {
      ranges[key].x = index;
      if (index > 0) ranges[shared_keys[threadIdx.x]].y = index;
    }
    if (index == n - 1) ranges[key].y = index + 1;
    sorted[index] = positions[indices[index]];
  }
}

__device__ float kernel_poly6(float r2, float h) {
  const float h2 = h * h, left = h2 - r2;
  return r2 < h2 ? 315.0f / (64.0f * 3.14159274f * powf(h, 9)) * left * left * left : 0.0f;
}

__device__ float density_of_cell(int3 at, float3 p, const uint2 *ranges, const float4 *sorted) {
  const uint2 range = ranges[key_of(at)];
  float sum = 0.0f;
  for (uint j = range.x; j < range.y; j++) {
    const float3 r = p - xyz(__ldg(sorted + j));
    sum += kernel_poly6(dot(r, r), params.radius);
  }
  return sum;
}

__global__ void density_and_pressure(const float4 *__restrict__ sorted, const uint *__restrict__ indices, const uint2 *__restrict__ ranges, float2 *__restrict__ results,
                                     uint n) {
  IN_GLOBAL_INDEX(n);
  const float3 p = xyz(sorted[index]);
  const int3 here = cell_at(p);
  float density = 0;
#pragma unroll 1
  for (int z = -1; z <= 1; z++)
    for (int y = -1; y <= 1; y++)
      for (int x = -1; x <= 1; x++) density += params.mass * density_of_cell(here + make_int3(x, y, z), p, ranges, sorted);
  results[indices[index]] = make_float2(density, fmaxf(params.stiffness * (density - params.rest), 0.0f));
}

int main() {
  const uint n = 4096, cells = 128;
  std::vector<float4> positions(n);
  for (uint i = 0; i < n; i++) positions[i] = make_float4(i % 16 / 8.0f - 1, i / 16 % 16 / 16.0f - 0.5f, i / 256 / 16.0f - 0.5f, 1);
  std::vector<uint> keys(n), indices(n);
  float4 *d_positions, *d_sorted;
  uint *d_keys, *d_indices;
  uint2 *d_ranges;
  float2 *d_results;
  cudaMalloc(&d_positions, n * sizeof(float4)), cudaMalloc(&d_sorted, n * sizeof(float4)), cudaMalloc(&d_results, n * sizeof(float2));
  cudaMalloc(&d_keys, n * sizeof(uint)), cudaMalloc(&d_indices, n * sizeof(uint)), cudaMalloc(&d_ranges, cells * sizeof(uint2));
  cudaMemcpy(d_positions, positions.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
  cudaMemset(d_ranges, 0, cells * sizeof(uint2));
  SimulationParameters changed;
  cudaMemcpyFromSymbol(&changed, params, sizeof changed);
  changed.mass = 0.1f;
  cudaMemcpyToSymbol(params, &changed, sizeof changed);
  compute_keys<<<n / 256, 256>>>(d_keys, d_indices, d_positions, n);
  cudaMemcpy(keys.data(), d_keys, n * sizeof(uint), cudaMemcpyDeviceToHost);
  std::iota(indices.begin(), indices.end(), 0u);
  std::stable_sort(indices.begin(), indices.end(), [&](uint a, uint b) { return keys[a] < keys[b]; });
  std::sort(keys.begin(), keys.end());
  cudaMemcpy(d_keys, keys.data(), n * sizeof(uint), cudaMemcpyHostToDevice);
  cudaMemcpy(d_indices, indices.data(), n * sizeof(uint), cudaMemcpyHostToDevice);
  find_cells<<<n / 256, 256, 257 * sizeof(uint)>>>(d_ranges, d_sorted, d_keys, d_indices, d_positions, n);
  density_and_pressure<<<n / 256, 256>>>(d_sorted, d_indices, d_ranges, d_results, n);
  return cudaDeviceSynchronize();
}
