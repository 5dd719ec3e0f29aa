// Adam for several tensors in one launch: the addresses and the work of each block come by value.
#include <cstdint>
#include <tuple>
#include <vector>

#define ILP 4
enum adamMode_t { ADAM_MODE_0 = 0, ADAM_MODE_1 = 1 };
constexpr int depth_to_max_tensors[5] = {110, 64, 48, 3, 30};
constexpr int depth_to_max_blocks[5] = {320, 320, 320, 16, 320};

template <int n>
struct TensorListMetadata {
  void *addresses[n][depth_to_max_tensors[n - 1]];
  int64_t sizes[depth_to_max_tensors[n - 1]];
  unsigned char block_to_tensor[depth_to_max_blocks[n - 1]];
  int block_to_chunk[depth_to_max_blocks[n - 1]];
};

template <typename T, typename U, typename... ArgTypes>
__global__ void multi_tensor_apply_kernel(int chunk_size, volatile int *noop_flag, T tl, U callable, ArgTypes... args) {
  callable(chunk_size, noop_flag, tl, args...);
}

template <typename T, typename MATH_T>
struct AdamFunctor {
  __device__ __forceinline__ void operator()(int chunk_size, volatile int *noop_gmem, TensorListMetadata<4> &tl, const float beta1,
                                             const float beta2, const float epsilon, const float lr, adamMode_t mode, const float decay) {
    if (*noop_gmem == 1) return;
    const int tensor_loc = tl.block_to_tensor[blockIdx.x], chunk_idx = tl.block_to_chunk[blockIdx.x];
    int n = tl.sizes[tensor_loc] - chunk_idx * chunk_size;
    T *g = (T *)tl.addresses[0][tensor_loc] + chunk_idx * chunk_size;
    T *p = (T *)tl.addresses[1][tensor_loc] + chunk_idx * chunk_size;
    T *m = (T *)tl.addresses[2][tensor_loc] + chunk_idx * chunk_size;
    T *v = (T *)tl.addresses[3][tensor_loc] + chunk_idx * chunk_size;
    for (int i_start = 0; i_start < n && i_start < chunk_size; i_start += blockDim.x * ILP) {
      MATH_T r_g[ILP], r_p[ILP], r_m[ILP], r_v[ILP];
#pragma unroll
      for (int ii = 0; ii < ILP; ii++) {
        int i = i_start + threadIdx.x + ii * blockDim.x;
        const bool inside = i < n && i < chunk_size;
        r_g[ii] = inside ? g[i] : MATH_T(0);
        r_p[ii] = inside ? p[i] : MATH_T(0);
        r_m[ii] = inside ? m[i] : MATH_T(0);
        r_v[ii] = inside ? v[i] : MATH_T(0);
      }
#pragma unroll
      for (int ii = 0; ii < ILP; ii++) {
        if (mode == ADAM_MODE_0) r_g[ii] = r_g[ii] + decay * r_p[ii];
        r_m[ii] = beta1 * r_m[ii] + (1 - beta1) * r_g[ii];
        r_v[ii] = beta2 * r_v[ii] + (1 - beta2) * r_g[ii] * r_g[ii];
        MATH_T update = r_m[ii] / (sqrtf(r_v[ii]) + epsilon);
        if (mode == ADAM_MODE_1) update += decay * r_p[ii];
        r_p[ii] = r_p[ii] - lr * update;
      }
#pragma unroll
      for (int ii = 0; ii < ILP; ii++) {
        int i = i_start + threadIdx.x + ii * blockDim.x;
        if (i < n && i < chunk_size) {
          p[i] = r_p[ii];
          m[i] = r_m[ii];
          v[i] = r_v[ii];
        }
      }
    }
  }
};

template <int depth, typename U, typename... ArgTypes>
void multi_tensor_apply(int chunk_size, int *noop, const std::vector<std::tuple<void *, int64_t>> (&lists)[depth], U callable, ArgTypes... args) {
  TensorListMetadata<depth> tl;
  int blocks = 0;
  for (size_t t = 0; t < lists[0].size(); t++) {
    tl.sizes[t] = std::get<1>(lists[0][t]);
    for (int d = 0; d < depth; d++) tl.addresses[d][t] = std::get<0>(lists[d][t]);
    for (int chunk = 0; chunk * chunk_size < tl.sizes[t]; chunk++, blocks++) {
      tl.block_to_tensor[blocks] = (unsigned char)t;
      tl.block_to_chunk[blocks] = chunk;
    }
  }
  multi_tensor_apply_kernel<<<blocks, 64>>>(chunk_size, noop, tl, callable, args...);
}

void adam(int *noop, const std::vector<std::tuple<void *, int64_t>> (&lists)[4], float lr) {
  multi_tensor_apply<4>(256, noop, lists, AdamFunctor<float, float>(), 0.9f, 0.999f, 1e-8f, lr, ADAM_MODE_1, 0.01f);
}
