#include <cuda_runtime.h>
#include <algorithm>
#include <cublas_v2.h>
#include <fstream>
#include <map>
#include <thrust/device_vector.h>
#include <thrust/sort.h>

__constant__ int table[4] = {3, 1, 4, 1};

__global__ void look_up(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = table[x[i] & 3];
}

namespace host {
std::map<std::string, cudaGraphExec_t> graphs;

void sort(thrust::device_vector<int> &v) { thrust::sort(v.begin(), v.end()); }

cudaGraphExec_t capture(cudaStream_t stream, const int *x, int *y, int n) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  look_up<<<(n + 63) / 64, 64, 0, stream>>>(x, y, n);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
  return graphs["look_up"] = exec;
}
}  // namespace host

extern "C" void save(const char *name, const int *y, int n) {
  std::ofstream file(name, std::ios::binary);
  file.write((const char *)y, n * sizeof(int));
}
