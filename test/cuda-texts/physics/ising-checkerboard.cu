// The Ising model: the black and the white spins of a board in turn, with random words from a hash of place and step, and spins of 4 bits in words of 64.
#include <cuda_runtime.h>
#include <getopt.h>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#define CRITICAL 2.26918531421f
enum Color : bool { WHITE = false, BLACK = true };

__device__ __forceinline__ uint32_t mix(uint32_t place, uint32_t step) {
  uint64_t state = (uint64_t)place * 0x9E3779B97F4A7C15ull + step * UINT64_C(0xD1B54A32D192ED03);
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ull;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBull;
  return static_cast<uint32_t>(state >> 32);
}

// Rows of one color have half the width of the board.
template <Color color>
__global__ void flip_spins(signed char *lattice, const signed char *__restrict__ other, const unsigned *__restrict__ thresholds, long long nx, long long ny,
                               unsigned step) {
  const long long tid = static_cast<long long>(blockDim.x) * blockIdx.x + threadIdx.x;
  const int i = tid / ny, j = tid % ny;
  if (i >= nx || j >= ny) return;

  const int above = (i + 1 < nx) ? i + 1 : 0, below = (i - 1 >= 0) ? i - 1 : nx - 1;
  const int right = (j + 1 < ny) ? j + 1 : 0, left = (j - 1 >= 0) ? j - 1 : ny - 1;
  int beside;
  if (color == BLACK) {
    beside = (i % 2) ? right : left;
  } else {
    beside = (i % 2) ? left : right;
  }
  const signed char spin = lattice[i * ny + j];
  const signed char sum = other[below * ny + j] + other[i * ny + j] + other[above * ny + j] + other[i * ny + beside];
  // -2 * spin * sum is 8, 4, 0, -4 or -8: a table of probabilities.
  const int gain = spin * sum;
  if (gain <= 0 || mix(tid, step) < thresholds[gain]) lattice[i * ny + j] = -spin;
}

// Sixteen spins in a word: sums of neighbours in all nibbles at once.
__global__ void sum_neighbours(const ulonglong2 *__restrict__ words, ulonglong2 *__restrict__ sums, int rows, int columns) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  const auto at = [=](int r, int c) { return words[(r + rows) % rows * columns + (c + columns) % columns]; };
  const ulonglong2 here = at(row, column), up = at(row - 1, column), down = at(row + 1, column);
  const unsigned long long before = at(row, column - 1).y, after = at(row, column + 1).x;
  ulonglong2 sum;
  sum.x = up.x + down.x + (here.x << 4 | before >> 60) + (here.x >> 4 | here.y << 60);
  sum.y = up.y + down.y + (here.y << 4 | here.x >> 60) + (here.y >> 4 | after << 60);
  sums[row * columns + column] = sum;
}

template <int BLOCK>
__global__ void magnetisation(const signed char *__restrict__ spins, size_t n, unsigned long long *total) {
  int sum = 0;
  const char4 *quads = reinterpret_cast<const char4 *>(spins);
  for (size_t at = blockIdx.x * BLOCK + threadIdx.x; at < n / 4; at += BLOCK * gridDim.x) {
    const char4 q = quads[at];
    sum += q.x + q.y + q.z + q.w;
  }
  sum = __reduce_add_sync(~0u, sum);
  __shared__ int partial;
  if (threadIdx.x == 0) partial = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicAdd_block(&partial, sum);
  __syncthreads();
  // Sums may be negative: they add up modulo 2^64.
  if (threadIdx.x == 0) atomicAdd(total, static_cast<unsigned long long>(static_cast<long long>(partial)));
}

static void usage(const char *name) { printf("Usage: %s [-x rows] [-y columns] [-a alpha]\n", name); }

int main(int argc, char **argv) {
  long long nx = 512, ny = 512;
  float alpha = 0.1f;
  for (int option; (option = getopt(argc, argv, "x:y:a:h")) != -1;) switch (option) {
      case 'x':
        nx = atoll(optarg);
        break;
      case 'y':
        ny = atoll(optarg);
        break;
      case 'a':
        alpha = std::stof(optarg);
        break;
      default:
        usage(argv[0]);
        return option != 'h';
    }
  signed char *black, *white;
  unsigned *thresholds, host[5] = {0xffffffffu, 0, (unsigned)(0.5f * alpha * CRITICAL * 4294967295.0f), 0, 1000};
  unsigned long long *total, sum = 0;
  cudaMalloc(&black, nx * ny / 2), cudaMalloc(&white, nx * ny / 2), cudaMalloc(&thresholds, sizeof host), cudaMalloc(&total, 8);
  cudaMemset(black, 1, nx * ny / 2), cudaMemset(white, 1, nx * ny / 2), cudaMemset(total, 0, 8);
  cudaMemcpy(thresholds, host, sizeof host, cudaMemcpyHostToDevice);
  const int blocks = (nx * ny / 2 + 127) / 128;
  for (unsigned step = 0; step < 100; step++) {
    flip_spins<BLACK><<<blocks, 128>>>(black, white, thresholds, nx, ny / 2, 2 * step);
    flip_spins<WHITE><<<blocks, 128>>>(white, black, thresholds, nx, ny / 2, 2 * step + 1);
  }
  magnetisation<128><<<16, 128>>>(black, nx * ny / 2, total);
  cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost);
  printf("magnetisation: %" PRId64 "\n", (int64_t)sum);
}
