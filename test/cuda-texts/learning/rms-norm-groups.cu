// Root mean square normalisation with tiles of cooperative groups; the last row of the block keeps its values in registers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <assert.h>
#include <ctype.h>
#include <time.h>

namespace cg = cooperative_groups;

typedef struct {
  int dim;
  int rows;
  float eps;
} Config;

#define MAX_PER_THREAD 4

template <int block_size, bool do_multiply = false>
static __global__ void rms_norm_f32(const float *x, const float *mul, float *dst, const Config config) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  __shared__ float partial[block_size / 32];
  const int row = block.group_index().x;
  const float *in = x + (ptrdiff_t)row * config.dim;
  float *out = dst + (ptrdiff_t)row * config.dim;

  float held[MAX_PER_THREAD];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < MAX_PER_THREAD; i++) {
    const int col = i * block_size + block.thread_rank();
    held[i] = col < config.dim ? in[col] : 0.0f;
    sum = fmaf(held[i], held[i], sum);
  }
  sum = cg::reduce(warp, sum, cg::plus<float>());
  if constexpr (block_size > 32) {
    static_assert(block_size % 32 == 0 && block_size <= 1024, "unexpected block_size");
    if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = sum;
    block.sync();
    sum = warp.thread_rank() < warp.meta_group_size() ? partial[warp.thread_rank()] : 0.0f;
    sum = cg::reduce(warp, sum, cg::plus<float>());
  }
  const float scale = rsqrtf(sum / config.dim + config.eps);
#pragma unroll
  for (int i = 0; i < MAX_PER_THREAD; i++) {
    const int col = i * block_size + block.thread_rank();
    if (col >= config.dim) break;
    if constexpr (do_multiply) {
      out[col] = scale * held[i] * mul[col];
    } else {
      out[col] = scale * held[i];
    }
  }
}

static long time_in_ms() {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void rms_norm(const float *x, const float *mul, float *dst, int dim, int rows, float eps, cudaStream_t stream) {
  Config config = {dim, rows, eps};
  assert(dim <= MAX_PER_THREAD * 128);
  const long start = time_in_ms();
  if (dim <= 128) {
    mul ? rms_norm_f32<32, true><<<rows, 32, 0, stream>>>(x, mul, dst, config) : rms_norm_f32<32><<<rows, 32, 0, stream>>>(x, mul, dst, config);
  } else {
    mul ? rms_norm_f32<128, true><<<rows, 128, 0, stream>>>(x, mul, dst, config) : rms_norm_f32<128><<<rows, 128, 0, stream>>>(x, mul, dst, config);
  }
  if (time_in_ms() - start > 1000) abort();
}
