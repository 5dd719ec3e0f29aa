// Quicksort of 32-bit keys, by kernels that launch kernels. The host launches one kernel, of one thread.
//
// `conquer` looks at a segment. A long one it has split around a pivot by the blocks of `split`, and launches itself
// behind that in the same stream, when it is known where the keys went: to the front those below the pivot, to the back
// those above. Both sides go on in streams of their own, so they are sorted side by side. Keys equal to the pivot are at
// their place, and are written there. A short segment is sorted by one block in shared memory (bitonic). Each split
// takes the keys from one of two arrays to the other; what is done stands in `keys`.
import { cudaKernel, i32, inout, type Device, type DeviceArray } from 'millrace';
import { runAlone } from './sort.js';

/** Keys that one block sorts. */
export const SHORT = 2048;

export const quicksort = cudaKernel(
  'quicksort',
  { keys: inout(i32), other: inout(i32), counts: inout(i32), n: i32 },
  `#define SHORT ${SHORT}
#define THREADS 256
#define PART 4096  // Keys that a block of split looks at.

struct Segment {
  int from, to;
  int depth;  // Of splits so far: odd ones have left the keys in the other array.
};

__global__ void fill(int* keys, int from, int to, int key) {
  int i = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to) keys[i] = key;
}

// The keys of a segment of at most SHORT keys, filled up to \`size\`, a power of two.
__global__ void __launch_bounds__(THREADS) sort_short(const int* source, int* keys, Segment segment, int size) {
  __shared__ int part[SHORT];
  const int count = segment.to - segment.from;
  for (int i = threadIdx.x; i < size; i += THREADS) part[i] = i < count ? source[segment.from + i] : 0x7fffffff;
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int pair = threadIdx.x; pair < size / 2; pair += THREADS) {
        int low = 2 * pair - (pair & (step - 1));
        int high = low + step;
        int a = part[low];
        int b = part[high];
        bool isUp = (low & run) == 0;
        part[low] = isUp ? min(a, b) : max(a, b);
        part[high] = isUp ? max(a, b) : min(a, b);
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < count; i += THREADS) keys[segment.from + i] = part[i];
}

// Each block counts its keys first, and then asks for as much room at either end.
__global__ void __launch_bounds__(THREADS) split(const int* source, int* target, Segment segment, int pivot, int* counts) {
  __shared__ int below[THREADS], above[THREADS];
  __shared__ int front, back;
  const int begin = segment.from + blockIdx.x * PART;
  const int end = min(begin + PART, segment.to);
  int less = 0;
  int more = 0;
  for (int i = begin + threadIdx.x; i < end; i += THREADS) {
    less += source[i] < pivot;
    more += source[i] > pivot;
  }
  below[threadIdx.x] = less;
  above[threadIdx.x] = more;
  __syncthreads();
  for (int step = 1; step < THREADS; step *= 2) {
    int left_below = threadIdx.x >= step ? below[threadIdx.x - step] : 0;
    int left_above = threadIdx.x >= step ? above[threadIdx.x - step] : 0;
    __syncthreads();
    below[threadIdx.x] += left_below;
    above[threadIdx.x] += left_above;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    front = segment.from + atomicAdd(&counts[0], below[THREADS - 1]);
    back = segment.to - atomicAdd(&counts[1], above[THREADS - 1]) - above[THREADS - 1];
  }
  __syncthreads();
  int to_front = front + below[threadIdx.x] - less;
  int to_back = back + above[threadIdx.x] - more;
  for (int i = begin + threadIdx.x; i < end; i += THREADS) {
    int key = source[i];
    if (key < pivot) target[to_front++] = key;
    if (key > pivot) target[to_back++] = key;
  }
}

__device__ int median(int a, int b, int c) {
  return max(min(a, b), min(max(a, b), c));
}

// Of nine keys spread over the segment.
__device__ int choose_pivot(const int* source, Segment segment) {
  int step = (segment.to - segment.from) / 9;
  const int* at = source + segment.from + step / 2;
  return median(median(at[0], at[step], at[2 * step]), median(at[3 * step], at[4 * step], at[5 * step]),
                median(at[6 * step], at[7 * step], at[8 * step]));
}

__global__ void conquer(int* keys, int* other, int* counts, Segment parent, int pivot);

// Launches what sorts a segment, on a stream of its own.
__device__ void begin(int* keys, int* other, int* counts, Segment segment) {
  const int count = segment.to - segment.from;
  if (count <= 0) return;
  int* source = segment.depth % 2 == 0 ? keys : other;
  int* target = segment.depth % 2 == 0 ? other : keys;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (count <= SHORT) {
    int size = 2;
    while (size < count) size *= 2;
    sort_short<<<1, THREADS, 0, stream>>>(source, keys, segment, size);
  } else {
    // Segments that are split at the same time are longer than SHORT, so each has a place of its own.
    int* own = counts + 2 * (segment.from / SHORT);
    own[0] = own[1] = 0;
    int pivot = choose_pivot(source, segment);
    split<<<(count + PART - 1) / PART, THREADS, 0, stream>>>(source, target, segment, pivot, own);
    conquer<<<1, 1, 0, stream>>>(keys, other, counts, segment, pivot);
  }
  cudaStreamDestroy(stream);
}

__global__ void conquer(int* keys, int* other, int* counts, Segment parent, int pivot) {
  const int* own = counts + 2 * (parent.from / SHORT);
  Segment left = {parent.from, parent.from + own[0], parent.depth + 1};
  Segment right = {parent.to - own[1], parent.to, parent.depth + 1};
  int equal = right.from - left.to;
  fill<<<(equal + THREADS - 1) / THREADS, THREADS>>>(keys, left.to, right.from, pivot);
  begin(keys, other, counts, left);
  begin(keys, other, counts, right);
}

extern "C" __global__ void quicksort(int* keys, int* other, int* counts, int n) {
  begin(keys, other, counts, {0, n, 0});
}`,
);

/** Submits the sorting of an array of i32. */
export function submit(device: Device, keys: DeviceArray<'i32'>): void {
  const n = keys.length;
  using other = device.empty(n, 'i32');
  using counts = device.empty(2 * (Math.floor(n / SHORT) + 1), 'i32');
  device.stream.launch(quicksort, { grid: 1, block: 1 }, { keys, other, counts, n });
}

await runAlone(import.meta.url, { name: 'quicksort', kernel: quicksort, submit });
