// Kernels whose threads wait for each other, for waiting.test.ts: one of each kind of barrier and warp primitive, and of
// each place of the language in which one may stand.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

#define FULL 0xffffffffu

// Shared memory.

/// Reverses each block of any shape by way of dynamic shared memory: values first, ranks behind them.
extern "C" __global__ void reverse_block(const int* x, int* y) {
  extern __shared__ double raw[];
  const int count = blockDim.x * blockDim.y * blockDim.z;
  int* values = (int*)raw;
  unsigned short* ranks = (unsigned short*)(values + count);
  const int rank = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  values[rank] = x[block * count + rank];
  ranks[rank] = (unsigned short)(count - 1 - rank);
  __syncthreads();
  y[block * count + ranks[rank]] = values[rank];
}

// Barriers that ask, threads that have returned, barriers that only some get to.

extern "C" __global__ void sort_block(int* x, int* rounds) {
  __shared__ int s[1024];
  const int t = threadIdx.x;
  s[t] = x[t];
  int round = 0, is_changed;
  do {
    is_changed = 0;
    for (int parity = 0; parity < 2; parity++) {
      __syncthreads();
      const int at = 2 * t + parity;
      if (at + 1 < blockDim.x && s[at] > s[at + 1]) {
        const int swapped = s[at];
        s[at] = s[at + 1];
        s[at + 1] = swapped;
        is_changed = 1;
      }
    }
    round++;
  } while (__syncthreads_or(is_changed));
  x[t] = s[t];
  if (t == 0) rounds[0] = round;
}

extern "C" __global__ void block_votes(int* y) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(t % 3 == 0);
  const int are_all = __syncthreads_and(t < blockDim.x);
  const int is_not_all = __syncthreads_and(t != 1);
  const int is_any = __syncthreads_or(t == blockDim.x - 1);
  const int is_none = __syncthreads_or(t > 5000);
  y[t] = count * 16 + are_all * 8 + is_not_all * 4 + is_any * 2 + is_none;
}

/// Several barriers in one expression.
extern "C" __global__ void votes_together(int* y) {
  const int t = threadIdx.x;
  y[t] = __syncthreads_count(t % 3 == 0) * 100 + __syncthreads_count(t % 2 == 0) * 2 + __syncthreads_and(t > 0);
}

/// Undefined in CUDA; here it ends.
extern "C" __global__ void split_barriers(int* y) {
  if (threadIdx.x % 2) {
    __syncthreads();
    y[threadIdx.x] = 1;
  } else {
    __syncthreads();
    y[threadIdx.x] = 2;
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] += 10 + __shfl_sync(FULL, 7, 3);
}

// Warp primitives.

template <typename T>
__device__ void shuffle_all(T* out, T value, int by, int width) {
  const int n = blockDim.x;
  out[threadIdx.x] = __shfl_sync(FULL, value, by, width);
  out[n + threadIdx.x] = __shfl_up_sync(FULL, value, by, width);
  out[2 * n + threadIdx.x] = __shfl_down_sync(FULL, value, by, width);
  out[3 * n + threadIdx.x] = __shfl_xor_sync(FULL, value, by, width);
}
extern "C" __global__ void shuffles(int by, int width, int* i, unsigned long long* u, float* f, double* d) {
  const int t = threadIdx.x;
  shuffle_all(i, 100 - t, by, width);
  shuffle_all<unsigned long long>(u, 5000000000ull + t, by, width);
  shuffle_all(f, 0.5f + t, by, width);
  shuffle_all(d, 1e100 + 1e90 * t, by, width);
}

extern "C" __global__ void votes(unsigned* y) {
  const unsigned t = threadIdx.x, n = blockDim.x;
  int are_equal = 7;
  y[t] = __ballot_sync(FULL, t % 3 == 1);
  y[n + t] = __any_sync(FULL, t == 5) * 2 + __all_sync(FULL, t < 40);
  y[2 * n + t] = __match_any_sync(FULL, t / 5);
  y[3 * n + t] = __match_all_sync(FULL, 3.5, &are_equal);
  y[4 * n + t] = are_equal;
  y[4 * n + t] += 10 * (__match_all_sync(FULL, t / 31, &are_equal) != 0);
  y[5 * n + t] = are_equal;
}

extern "C" __global__ void reductions(unsigned* u, int* i) {
  const unsigned t = threadIdx.x;
  u[t] = __reduce_add_sync(FULL, t + 1);
  u[t] += __reduce_min_sync(FULL, t + 7u) * 10000 + __reduce_max_sync(FULL, t) * 1000000;
  i[t] = __reduce_min_sync(FULL, 3 - (int)t) * 100 + __reduce_max_sync(FULL, 3 - (int)t);
  u[blockDim.x + t] = __reduce_and_sync(FULL, t | 8u) | __reduce_or_sync(FULL, t) << 8 | __reduce_xor_sync(FULL, t * t) << 16;
}

extern "C" __global__ void masks(unsigned* y) {
  const unsigned t = threadIdx.x;
  const unsigned lane = t % 32;
  if (lane >= 24) return;
  unsigned sum = __activemask();
  if (lane < 8) {
    sum = __activemask();
    __syncwarp(0xff);
    sum += 1000 * __reduce_add_sync(0xffu, lane);
  } else {
    // Not waited for: the first eight.
    sum = __ballot_sync(0xffff00u, 1);
    sum += __shfl_sync(0xffff00u, lane, 9);
  }
  __syncwarp();
  y[t] = sum + __any_sync(FULL, lane == 23);
}

extern "C" __global__ void votes_below(unsigned* y) {
  y[threadIdx.x] = __ballot_sync((1u << threadIdx.x % 32) - 1, threadIdx.x % 3 == 0);
}

// Places in which a call that waits may stand.

__device__ int echo(int v) {
  return __shfl_sync(FULL, v, threadIdx.x % 32);
}
__device__ bool is_odd(int v) {
  return __any_sync(FULL, 0) || (echo(v) & 1);
}
__device__ int& slot(int* of, int at) {
  __syncwarp();
  return of[at];
}
struct Pair {
  int a, b;
  __device__ int sum(int more) const {
    __syncwarp();
    return a + b + more;
  }
  __device__ Pair swapped() const;
  static __device__ int twice(int v) { return 2 * echo(v); }
};
__device__ Pair Pair::swapped() const {
  __syncwarp();
  return {b, a};
}
__device__ int factorial(int n) {
  return n < 2 ? 1 : n * factorial(n - 1) + 0 * echo(n);
}

extern "C" __global__ void expressions(int* y) {
  const int t = threadIdx.x;
  int v = 0;
  if (is_odd(t)) v += 1;
  if (!is_odd(t) && is_odd(t + 1)) v += 10;
  if (is_odd(t + 1) || is_odd(t)) v += 100;
  v += is_odd(t) ? echo(1000) : echo(2000);
  v += (t < 4 ? echo(t) : 7) * 10000;
  switch (echo(t) % 3) {
    case 0: v += 100000; break;
    case 1: v += echo(200000);
    default: v += 300000;
  }
  int turns = 0;
  while (echo(turns) < 3) turns++;
  for (int i = echo(0); i < echo(4); i += echo(2)) turns += 10;
  do turns += 100;
  while (echo(turns) < 300);
  y[t] = v;
  int local[3] = {echo(1), echo(2), echo(echo(3))};
  const Pair pair{echo(5), 6}, back = pair.swapped();
  slot(local, 1) += slot(local, 2);
  if (const int q = echo(9)) turns += q * 1000;
  y[blockDim.x + t] = turns + 1000000 * local[1] + 10000000 * (pair.sum(1) + back.a * 0) + (back.a - back.b) * 100000;
  y[2 * blockDim.x + t] = factorial(5) + Pair::twice(t) * 1000 + (echo(1), echo(2));
}

// Only what an expression decides on is called.

__device__ int bump(int* calls, int v) {
  __syncwarp();
  *calls += 1;
  return v;
}
__device__ bool is_called(int* calls, int c) {
  return c > 0 ? bump(calls, 1) : c < 0 && (bump(calls, 0) || bump(calls, 1) || bump(calls, 1));
}
extern "C" __global__ void conditionals(int c, int* y, int* calls) {
  int at = 0;
#define NOTE(value)          \
  do {                       \
    y[at] = (value);         \
    calls[++at] = 0;         \
  } while (0)
  int v = c ? bump(calls + at, 5) : 7;
  NOTE(v);
  v = 1 + (c ? 3 : bump(calls + at, 6) * 2), v++;
  NOTE(v);
  NOTE(c && bump(calls + at, 8));
  NOTE(!c || bump(calls + at, 0));
  NOTE(bump(calls + at, c) && 1 && bump(calls + at, 3) && !bump(calls + at, 1));
  NOTE(is_called(calls + at, c));
  if (c && bump(calls + at, 1)) v = 100;
  else v = 200;
  NOTE(v);
  int turns = 0;
  while (turns < 3 && (c || bump(calls + at, 1))) turns += bump(calls + at, 1) > 0 ? 1 : 2;
  NOTE(turns);
  turns = 0;
  for (int i = 0; i < 5 && bump(calls + at, i) < 3; c ? i++ : i += bump(calls + at, 2)) turns += 1;
  NOTE(turns);
  switch (c ? bump(calls + at, 1) : 2) {
    case 1: v = 10; break;
    default: v = 20;
  }
  NOTE(v);
  int list[3] = {c ? bump(calls + at, 1) : 2, (v = 30, 3), !c};
  NOTE(list[0] * 100 + list[1] * 10 + list[2]);
  NOTE((v = 4, c < 3 && c > 0) ? bump(calls + at, v) : c == 0 ? bump(calls + at, 50) : c << 1 ? bump(calls + at, 60) : 9);
  (c ? v : list[0]) = bump(calls + at, 11);
  NOTE(v + list[0] * 100);
  c ? (void)bump(calls + at, 1) : (void)0;
  const Pair pair = c ? Pair{bump(calls + at, 1), 2} : Pair{3, 4};
  NOTE(pair.a * 10 + pair.b);
  auto twice = [&](int q) -> int { return q && bump(calls + at, q) ? 2 * bump(calls + at, q) : -1; };
  v = twice(c);
  NOTE(v + bump(calls + at, (c || bump(calls + at, 2)) ? 1000 : 2000));
  int& which = c ? slot(list, 1) : slot(list, 2);
  NOTE(slot(&which, 0));
}

template <class F>
__device__ int apply(int n, F step) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += step(i);
  return sum;
}

extern "C" __global__ void lambdas(int* y) {
  __shared__ int s[1024];
  const int t = threadIdx.x;
  auto shared_sum = [&](int v) -> int {
    __syncthreads();
    s[t] = v;
    __syncthreads();
    return s[0] + s[blockDim.x - 1];
  };
  auto plain = [](int v) { return v + 1; };
  int v = shared_sum(plain(t));
  v += 10000 * apply(3, plain);
  v += 100000 * apply(2, [=](int i) -> int { return echo(i + t) - t; });
  [&] { __syncthreads(); }();
  auto other = shared_sum;
  y[t] = v + 1000000 * other(1);
}

// Much of it: frames are used again, and threads may have large arrays.

__device__ int step(int v) {
  __syncthreads();
  return v + 1;
}
extern "C" __global__ void many_calls(int* y, int times) {
  int v = 0;
  for (int i = 0; i < times; ++i) v = step(v);
  y[threadIdx.x] = v;
}
extern "C" __global__ void large_frames(int* y) {
  int own[3000];
  for (int i = 0; i < 3000; ++i) own[i] = i * threadIdx.x;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 3000; ++i) sum += own[i];
  y[threadIdx.x] = sum;
}

// Cooperative groups.

extern "C" __global__ void groups(int* y) {
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  __shared__ int s[1024];
  const int t = block.thread_rank();
  s[t] = t;
  cg::sync(block);
  int v = s[block.size() - 1 - t];
  block.sync();
  int sum = v;
  for (int by = tile.size() / 2; by > 0; by /= 2) sum += tile.shfl_down(sum, by);
  sum = tile.shfl(sum, 0);
  const int n = block.num_threads();
  y[t] = sum;
  y[n + t] = cg::reduce(warp, t, cg::plus<int>()) + cg::reduce(tile, t, cg::greater<int>()) * 10000;
  y[2 * n + t] = tile.ballot(t % 2) + 1000 * tile.meta_group_rank() + 100000 * tile.any(t == 0) + 1000000 * warp.all(t < n);
  if (t % 32 < 5) {
    const cg::coalesced_group few = cg::coalesced_threads();
    y[3 * n + t] = few.size() * 100 + few.thread_rank() * 10 + few.shfl(t % 32, few.size() - 1);
  }
  tile.sync();
}

// The grid as a group, in a launch of which no block waits for another.

extern "C" __global__ void grid_ranks(unsigned long long* y) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned long long rank = grid.thread_rank();
  y[rank] = rank + 1000 * grid.block_rank();
  __syncthreads();
  if (rank != 0) return;
  unsigned long long* const told = y + grid.size();
  told[0] = grid.num_threads();
  told[1] = grid.num_blocks();
  told[2] = grid.is_valid();
  told[3] = grid.dim_blocks().y * 100 + grid.dim_threads().y;
  told[4] = grid.thread_index().x + grid.block_index().x;
}
