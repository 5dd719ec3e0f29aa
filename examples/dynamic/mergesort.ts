// Merge sort of 32-bit keys, by kernels that launch kernels. The host launches one kernel, of one thread.
//
// Blocks sort tiles in shared memory. Then `merge_runs` merges pairs of sorted runs, each thread a few keys of the
// result: where they come from in the two runs, it finds by bisection. Each round makes runs twice as long in the other
// array. Between the rounds the whole grid has to be over, and that is what a launch for the end is: `next_round`
// launches the merging, and for the end itself.
import { cudaKernel, i32, inout, type Device, type DeviceArray } from 'millrace';
import { runAlone } from './sort.js';

/** Keys that one block sorts. */
export const TILE = 2048;

export const mergesort = cudaKernel(
  'mergesort',
  { keys: inout(i32), other: inout(i32), n: i32 },
  `#define TILE ${TILE}
#define THREADS 256
#define SLICE 32  // Keys that a thread merges.

__global__ void __launch_bounds__(THREADS) sort_tiles(int* keys, int n) {
  __shared__ int tile[TILE];
  const int begin = blockIdx.x * TILE;
  for (int i = threadIdx.x; i < TILE; i += THREADS) tile[i] = begin + i < n ? keys[begin + i] : 0x7fffffff;
  __syncthreads();
  for (int run = 2; run <= TILE; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int pair = threadIdx.x; pair < TILE / 2; pair += THREADS) {
        int low = 2 * pair - (pair & (step - 1));
        int high = low + step;
        int a = tile[low];
        int b = tile[high];
        bool isUp = (low & run) == 0;
        tile[low] = isUp ? min(a, b) : max(a, b);
        tile[high] = isUp ? max(a, b) : min(a, b);
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < TILE; i += THREADS) {
    if (begin + i < n) keys[begin + i] = tile[i];
  }
}

// How many of the first \`count\` keys of the result come from the run \`a\`.
__device__ int taken(const int* a, int a_count, const int* b, int b_count, int count) {
  int low = max(0, count - b_count);
  int high = min(count, a_count);
  while (low < high) {
    int middle = (low + high) / 2;
    if (a[middle] <= b[count - 1 - middle]) low = middle + 1;
    else high = middle;
  }
  return low;
}

__global__ void merge_runs(const int* source, int* target, int n, int width) {
  long long from = (long long)(blockIdx.x * blockDim.x + threadIdx.x) * SLICE;
  if (from >= n) return;
  int to = (int)min(from + SLICE, (long long)n);
  // A slice may lie in several pairs of runs, the last ones shorter.
  for (int at = (int)from; at < to;) {
    long long pair = at / (2LL * width) * (2LL * width);
    int middle = (int)min(pair + width, (long long)n);
    int end = (int)min(pair + 2LL * width, (long long)n);
    const int* a = source + pair;
    const int* b = source + middle;
    int a_count = middle - (int)pair;
    int b_count = end - middle;
    int i = taken(a, a_count, b, b_count, at - (int)pair);
    int j = at - (int)pair - i;
    for (int stop = min(to, end); at < stop; ++at) {
      bool isFirst = j >= b_count || (i < a_count && a[i] <= b[j]);
      target[at] = isFirst ? a[i++] : b[j++];
    }
  }
}

__global__ void copy(const int* source, int* target, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) target[i] = source[i];
}

__global__ void next_round(int* keys, int* other, int n, int width, bool isSwapped) {
  int* source = isSwapped ? other : keys;
  int* target = isSwapped ? keys : other;
  if (width >= n) {
    if (isSwapped) copy<<<(n + THREADS - 1) / THREADS, THREADS>>>(other, keys, n);
    return;
  }
  int slices = (n + SLICE - 1) / SLICE;
  merge_runs<<<(slices + THREADS - 1) / THREADS, THREADS>>>(source, target, n, width);
  next_round<<<1, 1, 0, cudaStreamTailLaunch>>>(keys, other, n, width > n / 2 ? n : 2 * width, !isSwapped);
}

extern "C" __global__ void mergesort(int* keys, int* other, int n) {
  if (n < 2) return;
  sort_tiles<<<(n + TILE - 1) / TILE, THREADS>>>(keys, n);
  next_round<<<1, 1, 0, cudaStreamTailLaunch>>>(keys, other, n, TILE, false);
}`,
);

/** Submits the sorting of an array of i32. */
export function submit(device: Device, keys: DeviceArray<'i32'>): void {
  const n = keys.length;
  using other = device.empty(n, 'i32');
  device.stream.launch(mergesort, { grid: 1, block: 1 }, { keys, other, n });
}

await runAlone(import.meta.url, { name: 'mergesort', kernel: mergesort, submit });
