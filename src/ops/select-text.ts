// CUDA C++ that finds the smallest keys of long rows: digit by digit from the highest, the key of the last of them, and then all up to it.
import { BEFORE, COPIES, DIGIT, forEachElement, type KeyForm, keyText, THREADS } from './radix-text.js';

/** Consecutive elements that a thread looks at. */
const RUN = 8;

/** Counts a digit among the elements whose higher digits are those of the key that is searched: `bins[row][digit]`. */
export function searchText(form: KeyForm): string {
  return `${keyText(form)}${DIGIT}
extern "C" __global__ void __launch_bounds__(${THREADS}) topkCount(
    const Element* x, const unsigned long long* found, unsigned int* bins, const int shift, const int isFirst, const int rows, const int length, const int chunk) {
  __shared__ unsigned int counts[256 * ${COPIES}];
  const int t = threadIdx.x, start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  unsigned int* own = counts + (t & ${COPIES - 1});
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    // Shifted twice, because a shift by all bits is none.
    const Key higher = isFirst ? (Key)0 : (Key)found[2 * row] >> shift >> 8;
    for (int at = t; at < 256 * ${COPIES}; at += ${THREADS}) counts[at] = 0;
    __syncthreads();${forEachElement(
      (element) => `
        if (isFirst || ordered(${element}) >> shift >> 8 == higher) atomicAdd(own + digitOf(${element}, shift) * ${COPIES}, 1u);`,
    )}
    __syncthreads();
    unsigned int sum = 0;
    for (int copy = 0; copy < ${COPIES}; copy++) sum += counts[t * ${COPIES} + copy];
    if (sum > 0) atomicAdd(bins + row * 256 + t, sum);
    __syncthreads();
  }
}
`;
}

/** Chooses the digit. `found[row]`: the key so far, and how many of the elements with it are still wanted. */
export const DIGIT_TEXT: string = `${BEFORE}
extern "C" __global__ void __launch_bounds__(${THREADS}) topkDigit(
    unsigned int* bins, unsigned long long* found, const int shift, const int isFirst, const int k) {
  __shared__ unsigned int sums[${THREADS / 32}];
  const int t = threadIdx.x, row = blockIdx.x;
  const unsigned long long key = isFirst ? 0ull : found[2 * row];
  const unsigned int wanted = isFirst ? (unsigned int)k : (unsigned int)found[2 * row + 1];
  const unsigned int count = bins[row * 256 + t];
  bins[row * 256 + t] = 0;
  const unsigned int ahead = before(count, sums);
  if (ahead < wanted && wanted <= ahead + count) {
    found[2 * row] = key | (unsigned long long)t << shift;
    found[2 * row + 1] = wanted - ahead;
  }
}
`;

/** Counts, in each chunk, the elements below the key and those with it: `counts[row][0 or 1][chunk]`. */
export function chunksText(form: KeyForm): string {
  return `${keyText(form)}
extern "C" __global__ void __launch_bounds__(${THREADS}) topkChunks(
    const Element* x, const unsigned long long* found, unsigned int* counts, const int rows, const int length, const int chunk) {
  __shared__ unsigned int lower, equal;
  const int t = threadIdx.x, start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    const Key key = (Key)found[2 * row];
    if (t == 0) lower = equal = 0;
    __syncthreads();
    unsigned int ownLower = 0, ownEqual = 0;${forEachElement(
      (element) => `{
        const Key other = ordered(${element});
        ownLower += other < key;
        ownEqual += other == key;
      }`,
    )}
    if (ownLower > 0) atomicAdd(&lower, ownLower);
    if (ownEqual > 0) atomicAdd(&equal, ownEqual);
    __syncthreads();
    if (t == 0) {
      counts[2ll * row * gridDim.x + blockIdx.x] = lower;
      counts[(2ll * row + 1) * gridDim.x + blockIdx.x] = equal;
    }
    __syncthreads();
  }
}
`;
}

/** Moves the elements below the key, and the first ones with it, in their order to `y`, and their numbers to `places`. */
export function takeText(form: KeyForm): string {
  return `${keyText(form)}${BEFORE}
extern "C" __global__ void __launch_bounds__(${THREADS}) topkTake(
    const Element* x, Element* y, int* places, const unsigned long long* found, const unsigned int* counts, const unsigned int* totals,
    const int rows, const int length, const int chunk, const int k) {
  __shared__ unsigned int sums[${THREADS / 32}];
  __shared__ unsigned int both;
  const int t = threadIdx.x, chunks = gridDim.x, own = blockIdx.x, start = own * chunk, end = start + min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    const unsigned int* lower = counts + 2ll * row * chunks;
    const unsigned int* equal = lower + chunks;
    const Key key = (Key)found[2 * row];
    const unsigned int wanted = (unsigned int)found[2 * row + 1];
    unsigned int low = lower[own], same = equal[own];
    const unsigned int lowEnd = own + 1 < chunks ? lower[own + 1] : totals[2 * row];
    const unsigned int sameEnd = own + 1 < chunks ? equal[own + 1] : totals[2 * row + 1];
    if (low == lowEnd && (same == sameEnd || same >= wanted)) continue;
    for (int first = start; first < end; first += ${RUN * THREADS}) {
      Element several[${RUN}];
      unsigned int number = 0;
      #pragma unroll
      for (int n = 0; n < ${RUN}; n++) {
        const int at = first + t * ${RUN} + n;
        if (at >= end) continue;
        several[n] = from[at];
        const Key other = ordered(several[n]);
        number += (other < key ? 1u : 0u) + (other == key ? 0x10000u : 0u);
      }
      const unsigned int ahead = before(number, sums);
      if (t == ${THREADS - 1}) both = ahead + number;
      unsigned int ownLow = low + (ahead & 0xffffu), ownSame = same + (ahead >> 16);
      #pragma unroll
      for (int n = 0; n < ${RUN}; n++) {
        const int at = first + t * ${RUN} + n;
        if (at >= end) continue;
        const Key other = ordered(several[n]);
        unsigned int to = 0xffffffffu;
        if (other < key) to = ownLow++;
        else if (other == key) {
          if (ownSame < wanted) to = (unsigned int)k - wanted + ownSame;
          ownSame++;
        }
        if (to == 0xffffffffu) continue;
        y[(long long)row * k + to] = several[n];
        places[(long long)row * k + to] = at;
      }
      __syncthreads();
      low += both & 0xffffu;
      same += both >> 16;
      __syncthreads();
    }
  }
}
`;
}
