// The softmax of each row in one pass: maxima and sums are reduced together.
#include <cfloat>
#include <cstdio>
#include <cub/cub.cuh>
#include <iostream>
#include <vector>

#define CUDA_CHECK(callstr)                                                                       \
  {                                                                                               \
    cudaError_t error_code = callstr;                                                             \
    if (error_code != cudaSuccess) {                                                              \
      std::cerr << "CUDA error " << error_code << " at " << __FILE__ << ":" << __LINE__ << "\n";  \
      std::exit(1);                                                                               \
    }                                                                                             \
  }

struct __align__(8) MD {
  float m;
  float d;
};

__device__ __forceinline__ MD reduce_md_op(MD a, MD b) {
  bool a_bigger = (a.m > b.m);
  MD bigger_m = a_bigger ? a : b;
  MD smaller_m = a_bigger ? b : a;
  MD res;
  res.d = bigger_m.d + smaller_m.d * __expf(smaller_m.m - bigger_m.m);
  res.m = bigger_m.m;
  return res;
}

template <int THREADBLOCK_SIZE>
__launch_bounds__(THREADBLOCK_SIZE) __global__ void online_softmax(const float *__restrict x, float *__restrict y, int V) {
  int thread_id = threadIdx.x;
  int vector_id = blockIdx.x;
  x += vector_id * V;
  y += vector_id * V;

  typedef cub::BlockReduce<MD, THREADBLOCK_SIZE> BlockReduce;
  __shared__ typename BlockReduce::TempStorage temp_storage;
  __shared__ MD md_total;

  MD md_partial;
  md_partial.m = -FLT_MAX;
  md_partial.d = 0.0F;
  for (int elem_id = thread_id; elem_id < V; elem_id += THREADBLOCK_SIZE) {
    MD new_elem;
    new_elem.m = x[elem_id];
    new_elem.d = 1.0F;
    md_partial = reduce_md_op(md_partial, new_elem);
  }
  MD md = BlockReduce(temp_storage).Reduce(md_partial, reduce_md_op);
  if (thread_id == 0) md_total = md;
  __syncthreads();

  float d_total_inverse = __fdividef(1.0F, md_total.d);
  for (int elem_id = thread_id; elem_id < V; elem_id += THREADBLOCK_SIZE)
    y[elem_id] = __expf(x[elem_id] - md_total.m) * d_total_inverse;
}

int main() {
  const int V = 1000, batch = 40;
  std::vector<float> host(V * batch, 0.5f);
  float *x, *y;
  CUDA_CHECK(cudaMalloc(&x, host.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&y, host.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(x, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  cudaEvent_t start, stop;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  CUDA_CHECK(cudaEventRecord(start, 0));
  online_softmax<128><<<batch, 128>>>(x, y, V);
  CUDA_CHECK(cudaEventRecord(stop, 0));
  CUDA_CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
  std::cout << "Online softmax: " << ms << " ms\n";
  return 0;
}
