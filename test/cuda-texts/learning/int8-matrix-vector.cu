// Products of quantised rows with a quantised vector: blocks of bytes, and the function for a format found at compile time.
#include <cuda_fp16.h>
#include <cstdint>
#include <cstdio>

#define QK8_0 32
#define QI8_0 (QK8_0 / 4)
#define QK4_0 32
#define GGML_UNUSED(x) (void)(x)
#ifndef WARP_SIZE
#define WARP_SIZE 32
#endif

typedef struct {
  half d;
  int8_t qs[QK8_0];
} block_q8_0;
static_assert(sizeof(block_q8_0) == sizeof(half) + QK8_0, "wrong q8_0 block size/padding");
typedef struct {
  half d;
  uint8_t qs[QK4_0 / 2];
} block_q4_0;
static_assert(sizeof(block_q4_0) == sizeof(half) + QK4_0 / 2, "wrong q4_0 block size/padding");

enum quant_type { TYPE_F32 = 0, TYPE_Q4_0 = 2, TYPE_Q8_0 = 8, TYPE_COUNT };

static __device__ __forceinline__ int get_int_b2(const void *x, const int &i32) {
  const uint16_t *x16 = (const uint16_t *)x;
  int x32 = x16[2 * i32 + 0] << 0;
  x32 |= x16[2 * i32 + 1] << 16;
  return x32;
}

static __device__ __forceinline__ float vec_dot_q8_0(const void *__restrict__ vbq, const block_q8_0 *__restrict__ y, const int &ib) {
  const block_q8_0 *bq = (const block_q8_0 *)vbq + ib;
  int sumi = 0;
#pragma unroll
  for (int i = 0; i < QI8_0; ++i) sumi = __dp4a(get_int_b2(bq->qs, i), get_int_b2(y->qs, i), sumi);
  return __half2float(bq->d) * __half2float(y->d) * sumi;
}
static __device__ __forceinline__ float vec_dot_q4_0(const void *__restrict__ vbq, const block_q8_0 *__restrict__ y, const int &ib) {
  const block_q4_0 *bq = (const block_q4_0 *)vbq + ib;
  int sumi = 0;
#pragma unroll
  for (int i = 0; i < QI8_0 / 2; ++i) {
    const int v = get_int_b2(bq->qs, i);
    sumi = __dp4a((v >> 0) & 0x0F0F0F0F, get_int_b2(y->qs, i), sumi);
    sumi = __dp4a((v >> 4) & 0x0F0F0F0F, get_int_b2(y->qs, i + 4), sumi);
    sumi -= __dp4a(0x08080808, get_int_b2(y->qs, i), __dp4a(0x08080808, get_int_b2(y->qs, i + 4), 0));
  }
  return __half2float(bq->d) * __half2float(y->d) * sumi;
}

typedef float (*vec_dot_q_cuda_t)(const void *__restrict__ vbq, const block_q8_0 *__restrict__ y, const int &ib);
static constexpr __device__ vec_dot_q_cuda_t get_vec_dot(quant_type type) {
  return type == TYPE_Q4_0 ? vec_dot_q4_0 : type == TYPE_Q8_0 ? vec_dot_q8_0 : nullptr;
}

template <quant_type type, int nwarps>
__launch_bounds__(nwarps *WARP_SIZE, 1) static __global__
    void mul_mat_vec_q(const void *__restrict__ vx, const void *__restrict__ vy, float *__restrict__ dst, const int ncols, const int nrows) {
  constexpr vec_dot_q_cuda_t vec_dot = get_vec_dot(type);
  const int row = blockIdx.x, blocks_per_row = ncols / QK8_0;
  const block_q8_0 *y = (const block_q8_0 *)vy;
  float tmp = 0.0f;
  for (int i = WARP_SIZE * threadIdx.y + threadIdx.x; i < blocks_per_row; i += nwarps * WARP_SIZE) tmp += vec_dot(vx, &y[i], row * blocks_per_row + i);
  __shared__ float tmp_shared[nwarps - 1 > 0 ? nwarps - 1 : 1][WARP_SIZE];
  if (threadIdx.y > 0) tmp_shared[threadIdx.y - 1][threadIdx.x] = tmp;
  __syncthreads();
  if (threadIdx.y > 0) return;
#pragma unroll
  for (int l = 0; l < nwarps - 1; ++l) tmp += tmp_shared[l][threadIdx.x];
#pragma unroll
  for (int mask = WARP_SIZE / 2; mask > 0; mask >>= 1) tmp += __shfl_xor_sync(0xffffffff, tmp, mask, WARP_SIZE);
  if (threadIdx.x == 0) dst[row] = tmp;
  GGML_UNUSED(nrows);
}

static void mul_mat_vec_q_cuda(quant_type type, const void *vx, const void *vy, float *dst, int ncols, int nrows, cudaStream_t stream) {
  const dim3 block_nums(nrows, 1, 1), block_dims(WARP_SIZE, 2, 1);
  switch (type) {
    case TYPE_Q4_0: mul_mat_vec_q<TYPE_Q4_0, 2><<<block_nums, block_dims, 0, stream>>>(vx, vy, dst, ncols, nrows); break;
    case TYPE_Q8_0: mul_mat_vec_q<TYPE_Q8_0, 2><<<block_nums, block_dims, 0, stream>>>(vx, vy, dst, ncols, nrows); break;
    default: fprintf(stderr, "unsupported type %d\n", type);
  }
}
