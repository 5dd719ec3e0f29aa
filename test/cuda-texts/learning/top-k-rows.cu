// The K largest of each row: a list in each thread, and a tree of merges in raw shared memory. Instances are written out.
#include <cuda_fp16.h>
#include <cfloat>
#include <vector>

template <typename T, int MAX_K>
struct TopK {
  int p[MAX_K];
  T u[MAX_K];

  __device__ __forceinline__ void insert(T elem, int elem_id) {
    if (elem > u[MAX_K - 1] || (p[MAX_K - 1] == -1) || ((elem == u[MAX_K - 1]) && (elem_id < p[MAX_K - 1]))) {
      u[MAX_K - 1] = elem;
      p[MAX_K - 1] = elem_id;
    }
    for (int k = MAX_K - 2; k >= 0; --k) {
      if ((u[k + 1] > u[k]) || (p[k] == -1) || ((u[k + 1] == u[k]) && (p[k + 1] < p[k]))) {
        T u2 = u[k];
        int p2 = p[k];
        u[k] = u[k + 1];
        p[k] = p[k + 1];
        u[k + 1] = u2;
        p[k + 1] = p2;
      }
    }
  }
  __device__ __forceinline__ void init() {
#pragma unroll
    for (int i = 0; i < MAX_K; i++) {
      p[i] = -1;
      u[i] = -FLT_MAX;
    }
  }
};

template <typename T, int MAX_K>
__device__ __forceinline__ TopK<T, MAX_K> reduce_topk_op(const TopK<T, MAX_K> &a, const TopK<T, MAX_K> &b) {
  TopK<T, MAX_K> res = a;
  for (int i = 0; i < MAX_K; ++i)
    if (b.p[i] != -1) res.insert(b.u[i], b.p[i]);
  return res;
}

template <typename T, int MAX_K, int THREADBLOCK_SIZE>
__launch_bounds__(THREADBLOCK_SIZE) __global__ void topk_rows(const T *__restrict log_probs, int *__restrict ids, T *__restrict vals,
                                                              const bool *finished, const int vocab_size) {
  extern __shared__ __align__(16) char array[];
  TopK<T, MAX_K> *lists = reinterpret_cast<TopK<T, MAX_K> *>(array);
  T *s_scale = reinterpret_cast<T *>(array + sizeof(TopK<T, MAX_K>) * THREADBLOCK_SIZE);
  const int tid = threadIdx.x, row = blockIdx.x;
  if (finished != nullptr && finished[row]) {
    if (tid < MAX_K) ids[row * MAX_K + tid] = -1;
    return;
  }
  if (tid == 0) *s_scale = T(2);
  TopK<T, MAX_K> partial;
  partial.init();
  for (int elem_id = tid; elem_id < vocab_size; elem_id += THREADBLOCK_SIZE) partial.insert(log_probs[row * vocab_size + elem_id], elem_id);
  lists[tid] = partial;
  __syncthreads();
  for (int half_of = THREADBLOCK_SIZE >> 1; half_of > 0; half_of >>= 1) {
    if (tid < half_of) lists[tid] = reduce_topk_op(lists[tid], lists[tid + half_of]);
    __syncthreads();
  }
  if (tid < MAX_K) {
    ids[row * MAX_K + tid] = lists[0].p[tid];
    vals[row * MAX_K + tid] = lists[0].u[tid] * *s_scale;
  }
}

#define CASE_K(K)                                                                                                              \
  case K:                                                                                                                      \
    topk_rows<T, K, 64><<<batch, 64, sizeof(TopK<T, K>) * 64 + sizeof(T), stream>>>(log_probs, ids, vals, finished, vocab_size); \
    break;

template <typename T>
void invokeTopK(const T *log_probs, int *ids, T *vals, const bool *finished, int batch, int k, int vocab_size, cudaStream_t stream) {
  switch (k) {
    CASE_K(1);
    CASE_K(2);
    CASE_K(5);
    default: break;
  }
}
#undef CASE_K
template void invokeTopK(const float *, int *, float *, const bool *, int, int, int, cudaStream_t);
template __global__ void topk_rows<float, 5, 64>(const float *, int *, float *, const bool *, const int);
