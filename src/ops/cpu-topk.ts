// The largest or smallest elements of long rows on a CPU device: a thread keeps those of a chunk in a heap, which few elements of a chunk enter.
// Those of all chunks are sorted then.
import { Arguments } from './body.js';
import type { Given } from './radix.js';
import { type KeyForm, keyText } from './radix-text.js';
import type { Rows } from './rows.js';
import type { Target } from './target.js';

/** Each chunk fills a heap of its own, so a few long ones take less time; the chunks of all rows are enough for the cores of a machine. */
const LEAST_CHUNK = 2 ** 16;
const MOST_CHUNKS = 64;
/** Shorter rows are sorted sooner. */
const LEAST_ROW = 2048;
/** More of a chunk than this part are found by sorting the row. */
const LARGEST_PART = 1 / 16;
const MOST_ROWS = 65535;
/** Elements that are compared with the last one of a heap at once. */
const STEP = 64;

/** The chunks of a row whose first `k` elements are looked for; 0: to sort the row takes less time. */
export function topChunks({ count, length }: Rows, k: number): number {
  if (k === 0 || length <= LEAST_ROW || k > length * LARGEST_PART) return 0;
  const most = Math.max(1, Math.floor(MOST_CHUNKS / count));
  return Math.max(1, Math.min(most, Math.floor(length / Math.max(LEAST_CHUNK, k / LARGEST_PART))));
}

/** The first `k` elements of each chunk in the order of their keys, and their numbers. */
export function submitTop(
  from: Given['keys'],
  { count, length }: Rows,
  k: number,
  chunks: number,
  isDescending: boolean,
  to: { readonly keys: Given['keys']; readonly indices: Given['keys'] },
  { recorder }: Target,
): void {
  const args = new Arguments();
  args.array('x', from);
  args.array('y', to.keys, 'output');
  args.array('places', to.indices, 'output');
  args.numbers({ rows: count, length, k });
  const form = { dtype: from.dtype, isDescending };
  args.launchCuda(recorder, 'topk', `${isDescending}`, [chunks, Math.min(count, MOST_ROWS)], 1, 'topOfChunk', () => topText(form));
}

/** The root of the heap comes last of its elements: its key is the largest or, of equal keys, its number. */
function topText(form: KeyForm): string {
  return `${keyText(form)}
__device__ __forceinline__ bool isBehind(const Key key, const int place, const Key other, const int otherPlace) {
  return key > other || (key == other && place > otherPlace);
}
__device__ __forceinline__ void sink(Element* heap, int* numbers, const int size, const Element element, const int number) {
  const Key key = ordered(element);
  int at = 0;
  for (;;) {
    int child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && isBehind(ordered(heap[child + 1]), numbers[child + 1], ordered(heap[child]), numbers[child])) child++;
    if (!isBehind(ordered(heap[child]), numbers[child], key, number)) break;
    heap[at] = heap[child]; numbers[at] = numbers[child];
    at = child;
  }
  heap[at] = element; numbers[at] = number;
}
extern "C" __global__ void topOfChunk(const Element* x, Element* y, int* places, const int rows, const int length, const int k) {
  const int start = (int)((long long)length * blockIdx.x / gridDim.x), end = (int)((long long)length * (blockIdx.x + 1) / gridDim.x);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    const long long base = ((long long)row * gridDim.x + blockIdx.x) * k;
    Element* heap = y + base;
    int* numbers = places + base;
    for (int n = 0; n < k; n++) {
      // The new leaf rises to its place.
      const Key key = ordered(from[start + n]);
      int at = n;
      while (at > 0 && !isBehind(ordered(heap[(at - 1) / 2]), numbers[(at - 1) / 2], key, start + n)) {
        heap[at] = heap[(at - 1) / 2]; numbers[at] = numbers[(at - 1) / 2];
        at = (at - 1) / 2;
      }
      heap[at] = from[start + n]; numbers[at] = start + n;
    }
    Key last = ordered(heap[0]);
    for (int first = start + k; first < end; first += ${STEP}) {
      const int next = first + min(${STEP}, end - first);
      // Without a branch for each element, which lanes can do.
      unsigned int enters = 0;
      if (next - first == ${STEP}) {
        for (int n = 0; n < ${STEP}; n++) enters |= ordered(from[first + n]) < last ? 1u : 0u;
        if (enters == 0) continue;
      }
      for (int at = first; at < next; at++) {
        if (ordered(from[at]) >= last) continue;
        sink(heap, numbers, k, from[at], at);
        last = ordered(heap[0]);
      }
    }
    for (int size = k - 1; size > 0; size--) {
      const Element element = heap[size]; const int number = numbers[size];
      heap[size] = heap[0]; numbers[size] = numbers[0];
      sink(heap, numbers, size, element, number);
    }
  }
}
`;
}
