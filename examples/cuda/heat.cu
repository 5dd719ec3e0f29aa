// Heat in a square plate whose upper edge is kept hot: Jacobi steps until no cell changes by more than a tolerance.
//
//   nvcc -arch=sm_90 heat.cu -o heat && ./heat
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                       \
  do {                                                                                    \
    const cudaError_t error = (call);                                                     \
    if (error != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      std::exit(EXIT_FAILURE);                                                            \
    }                                                                                     \
  } while (0)

constexpr int TILE = 16;
constexpr int BLOCK = 256;

// One step. A block loads its tile and the cells around it (the halo) into shared memory, so it reads each cell once.
__global__ void heat_step(const float* now, float* next, int n, float rate) {
  __shared__ float tile[TILE + 2][TILE + 2];
  const int left = blockIdx.x * TILE - 1;
  const int top = blockIdx.y * TILE - 1;
  for (int i = threadIdx.y * TILE + threadIdx.x; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
    const int x = min(max(left + i % (TILE + 2), 0), n - 1);
    const int y = min(max(top + i / (TILE + 2), 0), n - 1);
    tile[i / (TILE + 2)][i % (TILE + 2)] = now[y * n + x];
  }
  __syncthreads();

  const int x = blockIdx.x * TILE + threadIdx.x;
  const int y = blockIdx.y * TILE + threadIdx.y;
  if (x >= n || y >= n) return;
  const int tx = threadIdx.x + 1;
  const int ty = threadIdx.y + 1;
  const float here = tile[ty][tx];
  const bool is_edge = x == 0 || y == 0 || x == n - 1 || y == n - 1;
  const float around = tile[ty - 1][tx] + tile[ty + 1][tx] + tile[ty][tx - 1] + tile[ty][tx + 1];
  next[y * n + x] = is_edge ? here : here + rate * (around - 4.0f * here);
}

// The largest change of a cell. Non-negative floats compare like the integers with the same bits, so atomicMax works on those.
__global__ void largest_change(const float* a, const float* b, int count, float* largest) {
  __shared__ float warps[BLOCK / 32];
  float change = 0.0f;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += gridDim.x * BLOCK)
    change = fmaxf(change, fabsf(a[i] - b[i]));
  for (int offset = 16; offset > 0; offset /= 2) change = fmaxf(change, __shfl_down_sync(0xffffffff, change, offset));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = change;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < BLOCK / 32; warp++) change = fmaxf(change, warps[warp]);
  atomicMax(reinterpret_cast<int*>(largest), __float_as_int(change));
}

static void step_on_host(const std::vector<float>& now, std::vector<float>& next, int n, float rate) {
  for (int y = 1; y < n - 1; y++) {
    for (int x = 1; x < n - 1; x++) {
      const int i = y * n + x;
      next[i] = now[i] + rate * (now[i - n] + now[i + n] + now[i - 1] + now[i + 1] - 4.0f * now[i]);
    }
  }
}

int main() {
  const int n = 50;
  const int period = 400;  // steps between two checks of the plate
  const float rate = 0.25f;
  const float tolerance = 1e-5f;

  std::vector<float> plate(n * n, 0.0f);
  std::fill(plate.begin(), plate.begin() + n, 1.0f);
  const size_t bytes = plate.size() * sizeof(float);
  float *a, *b, *largest;
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&largest, sizeof(float)));
  CHECK(cudaMemcpy(a, plate.data(), bytes, cudaMemcpyHostToDevice));

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  const dim3 block(TILE, TILE);
  const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  std::vector<float> seen(plate.size());
  int steps = 0;
  for (float change = INFINITY; change > tolerance;) {
    for (int step = 0; step < period; step += 2) {
      heat_step<<<grid, block>>>(a, b, n, rate);
      heat_step<<<grid, block>>>(b, a, n, rate);
    }
    CHECK(cudaMemset(largest, 0, sizeof(float)));
    largest_change<<<16, BLOCK>>>(a, b, n * n, largest);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&change, largest, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(seen.data(), a, bytes, cudaMemcpyDeviceToHost));
    steps += period;
    std::printf("step %d: the middle has %.3f\n", steps, seen[n / 2 * n + n / 2]);
  }
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));

  std::vector<float> next = plate;
  for (int step = 0; step < steps; step++) {
    step_on_host(plate, next, n, rate);
    std::swap(plate, next);
  }
  float difference = 0;
  for (size_t i = 0; i < plate.size(); i++) difference = std::max(difference, std::fabs(plate[i] - seen[i]));
  std::printf("%d steps in %.1f ms: %s\n", steps, ms, difference < 1e-4f ? "as on the host" : "WRONG");

  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(largest));
  return difference < 1e-4f ? EXIT_SUCCESS : EXIT_FAILURE;
}
