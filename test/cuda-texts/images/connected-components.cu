// Labels of connected pixels by trees of a union-find: tiles in shared memory first, with a barrier that votes, then their borders.
#include <cuda_runtime.h>
#include <cassert>
#include <cstdint>
#include <queue>
#include <stack>

namespace labeling {

constexpr unsigned kRows = 8u, kCols = 16u, kTile = kRows * kCols;

enum class Info : unsigned char { none = 0, left = 1 << 0, right = 1 << 1, up = 1 << 2, down = 1 << 3 };
__host__ __device__ inline Info &operator|=(Info &a, Info b) { return a = static_cast<Info>(static_cast<unsigned char>(a) | static_cast<unsigned char>(b)); }
constexpr __host__ __device__ bool has(Info set, Info flag) { return (static_cast<unsigned char>(set) & static_cast<unsigned char>(flag)) != 0; }

namespace {

// Returns the root index of the UFTree
template <typename Label>
__device__ unsigned Find(const Label *s_buf, unsigned n) {
  while (s_buf[n] != n) n = s_buf[n];
  return n;
}

// Merges the UFTrees of a and b, linking one root to the other
__device__ void Union(unsigned *s_buf, unsigned a, unsigned b) {
  bool done;
  do {
    a = Find((volatile unsigned *)s_buf, a);
    b = Find((volatile unsigned *)s_buf, b);
    if (a < b) {
      unsigned old = atomicMin(s_buf + b, a);
      done = (old == b);
      b = old;
    } else if (b < a) {
      unsigned old = atomicMin(s_buf + a, b);
      done = (old == a);
      a = old;
    } else {
      done = true;
    }
  } while (!done);
}

}  // namespace

// The label of a pixel in its tile: the least index of pixels that are connected within the tile.
__global__ void LocalMerge(const uint8_t *img, unsigned *labels, const int cols, const int rows) {
  __shared__ unsigned tile[kTile];
  __shared__ uint8_t values[kRows][kCols];
  const unsigned x = blockIdx.x * kCols + threadIdx.x, y = blockIdx.y * kRows + threadIdx.y, own = threadIdx.y * kCols + threadIdx.x;
  const bool in_limits = x < cols && y < rows;
  const uint8_t value = in_limits ? img[y * cols + x] : 0xFF;
  values[threadIdx.y][threadIdx.x] = value;
  tile[own] = own;
  __syncthreads();
  Info info = Info::none;
  if (in_limits) {
    if (threadIdx.x > 0 && values[threadIdx.y][threadIdx.x - 1] == value) info |= Info::left;
    if (threadIdx.x < kCols - 1 && values[threadIdx.y][threadIdx.x + 1] == value) info |= Info::right;
    if (threadIdx.y > 0 && values[threadIdx.y - 1][threadIdx.x] == value) info |= Info::up;
    if (threadIdx.y < kRows - 1 && values[threadIdx.y + 1][threadIdx.x] == value) info |= Info::down;
  }
  bool changed;
  do {
    const unsigned before = tile[own];
    unsigned least = before;
    if (has(info, Info::left)) least = min(least, tile[own - 1]);
    if (has(info, Info::right)) least = min(least, tile[own + 1]);
    if (has(info, Info::up)) least = min(least, tile[own - kCols]);
    if (has(info, Info::down)) least = min(least, tile[own + kCols]);
    least = tile[least];
    __syncthreads();
    if ((changed = least < before)) tile[own] = least;
  } while (__syncthreads_or(changed));
  __syncthreads();
  if (!in_limits) return;
  const unsigned root = Find(tile, own);
  labels[y * cols + x] = (blockIdx.y * kRows + root / kCols) * cols + blockIdx.x * kCols + root % kCols;
}

// Joins pixels with their left and upper neighbours, also across tiles.
__global__ void GlobalMerge(const uint8_t *img, unsigned *labels, const int cols, const int rows) {
  const unsigned x = blockIdx.x * kCols + threadIdx.x, y = blockIdx.y * kRows + threadIdx.y, at = y * cols + x;
  if (x >= cols || y >= rows) return;
  assert(labels[at] <= at);
  if (x > 0 && img[at - 1] == img[at]) Union(labels, at - 1, at);
  if (y > 0 && img[at - cols] == img[at]) Union(labels, at - cols, at);
}

__global__ void PathCompression(unsigned *labels, const int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) labels[i] = Find(labels, i);
}

void Label(const uint8_t *img, unsigned *labels, int cols, int rows) {
  const dim3 block(kCols, kRows), grid((cols + kCols - 1) / kCols, (rows + kRows - 1) / kRows);
  LocalMerge<<<grid, block>>>(img, labels, cols, rows);
  GlobalMerge<<<grid, block>>>(img, labels, cols, rows);
  PathCompression<<<(cols * rows + 255) / 256, 256>>>(labels, cols * rows);
  std::queue<int> none;
  assert(none.empty() && cudaDeviceSynchronize() == cudaSuccess);
}

}  // namespace labeling
