#include <cuda_runtime.h>
#include <chrono>
#include <cstdio>
#include <memory>

struct GpuTimer {
  cudaEvent_t start, stop;
  GpuTimer() {
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
  }
  ~GpuTimer() { cudaEventDestroy(start); }
  float elapsed() {
    float ms;
    cudaEventElapsedTime(&ms, start, stop);
    return ms;
  }
};

static cudaStream_t streams[4];
static std::unique_ptr<GpuTimer> timer;

class Matrix {
 public:
  int rows, columns;
  float *data;
  Matrix(int r, int c) : rows(r), columns(c) { cudaMallocManaged(&data, r * c * sizeof(float)); }
  void print() const { printf("%d x %d\n", rows, columns); }
  __host__ __device__ float at(int r, int c) const { return data[r * columns + c]; }
};

__global__ void row_sums(const float *x, float *y, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int c = 0; c < columns; c++) sum += x[r * columns + c];
  y[r] = sum;
}

void run(const Matrix &m, float *y) {
  GpuTimer timer;
  row_sums<<<1, 256, 0, streams[0]>>>(m.data, y, m.rows, m.columns);
  cudaStreamSynchronize(streams[0]);
}
