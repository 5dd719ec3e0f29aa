// Radix sorts on a CPU device. A row that fits in a core's cache is sorted by one thread, by 8 bits of the keys a pass, from the lowest ones up. A longer
// one is cut into chunks, which move their elements, stably, to buckets by the highest bits in which keys differ; then each bucket is sorted by one thread.
import { type Beside, bitsOf, type KeyForm, keyText } from './radix-text.js';
import type { Given, Wanted } from './radix.js';
import { Arguments } from './body.js';
import type { Rows } from './rows.js';
import type { Target } from './target.js';

/** Shorter rows are sorted sooner by insertion and merging than their digits are counted. */
export const LEAST_CPU_RADIX_ROW = 256;
/** A row, its copy and the numbers beside them fit in the second cache of a core. */
const MOST_IN_CACHE = 2 ** 15;
/** The elements of a chunk at least, and the chunks of all rows at most: enough for the cores of a machine to finish together. */
const LEAST_CHUNK = 2 ** 16;
const MOST_CHUNKS = 64;
/** Threads that take rows in turn. */
const MOST_ROWS = 65535;

/** Buckets of a long row, whose counters still fit in the first cache of a core. */
const BUCKET_BITS = 11;
const BUCKETS = 2 ** BUCKET_BITS;
/** Odd, so that every bucket is one of a block. */
const BUCKET_STRIDE = 1031;
/** Shorter buckets are sorted by fewer bits a pass: their elements would be fewer than the counters. */
const LEAST_WIDE = 2048;
const NARROW_BITS = 7;
/** Such a bucket is sorted by insertion. */
const MOST_INSERTED = 24;
/** Of the elements that are not in their places after they were sorted by some bits, for each element of the bucket. */
const MOST_MOVES = 4;

/** Sorts rows of `from`, as `radixSort` does on a GPU. */
export function cpuRadixSort(from: Given, to: Wanted, rows: Rows, isDescending: boolean, target: Target): void {
  const { dtype, length: total } = from.keys;
  const isWith = to.indices !== undefined;
  using otherKeys = target.temporary([total], dtype);
  using ownKeys = to.keys === undefined ? target.temporary([total], dtype) : undefined;
  using otherIndices = isWith ? target.temporary([total], 'i32') : undefined;
  const last = { keys: (to.keys ?? ownKeys)!, indices: to.indices };
  const other = { keys: otherKeys, indices: otherIndices };
  const form = { dtype, isDescending };
  if (rows.length <= MOST_IN_CACHE) sortInCache(from, last, other, rows, form, target);
  else sortBuckets(from, last, other, rows, form, target);
}

function sortInCache(from: Given, to: Wanted, other: Wanted, rows: Rows, form: KeyForm, { recorder }: Target): void {
  const args = new Arguments();
  args.array('x', from.keys);
  args.array('y', to.keys!, 'output');
  args.array('z', other.keys!, 'output');
  if (to.indices !== undefined) {
    if (from.indices !== undefined) args.array('places', from.indices);
    args.array('yPlaces', to.indices, 'output');
    args.array('zPlaces', other.indices!, 'output');
  }
  args.numbers({ rows: rows.count, length: rows.length });
  const beside = besideOf(from, to);
  args.launchCuda(recorder, 'sort', `${form.isDescending}`, [Math.min(rows.count, MOST_ROWS), 1], 1, 'sortRow', () =>
    rowText(form, beside),
  );
}

/** Both have keys. `other` is written, too. */
function sortBuckets(from: Given, to: Wanted, other: Wanted, { count, length }: Rows, form: KeyForm, target: Target): void {
  const { recorder } = target;
  const chunk = Math.max(LEAST_CHUNK, Math.ceil(length / Math.max(1, Math.floor(MOST_CHUNKS / count))));
  const chunks = Math.ceil(length / chunk);
  const rows = Math.min(count, MOST_ROWS);
  const key = `${form.isDescending}`;
  const numbers = { rows: count, length, chunk };
  using bits = target.temporary([count, chunks], bitsOf(form.dtype) === 64 ? 'u64' : 'u32');
  using counts = target.temporary([count, chunks, BUCKETS], 'u32');
  using starts = target.temporary([count, BUCKETS + 1], 'u32');

  const finding = new Arguments();
  finding.array('x', from.keys);
  finding.array('bits', bits, 'output');
  finding.numbers(numbers);
  finding.launchCuda(recorder, 'sort', key, [chunks, rows], 1, 'findBits', () => bitsText(form));

  const counting = new Arguments();
  counting.array('x', from.keys);
  counting.array('bits', bits);
  counting.array('counts', counts, 'output');
  counting.numbers(numbers);
  counting.launchCuda(recorder, 'sort', key, [chunks, rows], 1, 'countChunk', () => countText(form));

  const moving = new Arguments();
  moving.array('x', from.keys);
  moving.array('y', other.keys!, 'output');
  if (to.indices !== undefined) {
    if (from.indices !== undefined) moving.array('places', from.indices);
    moving.array('newPlaces', other.indices!, 'output');
  }
  moving.array('bits', bits);
  moving.array('counts', counts);
  moving.array('starts', starts, 'output');
  moving.numbers(numbers);
  const beside = besideOf(from, to);
  moving.launchCuda(recorder, 'sort', key, [chunks, rows], 1, 'moveChunk', () => moveText(form, beside));

  const sorting = new Arguments();
  sorting.array('x', other.keys!, 'inout');
  sorting.array('y', to.keys!, 'output');
  if (to.indices !== undefined) {
    sorting.array('places', other.indices!, 'inout');
    sorting.array('newPlaces', to.indices, 'output');
  }
  sorting.array('bits', bits);
  sorting.array('starts', starts);
  sorting.numbers({ rows: count, length, chunks });
  sorting.launchCuda(recorder, 'sort', key, [BUCKETS, rows], 1, 'sortBucket', () => bucketText(form, beside !== 'none'));
}

function besideOf(from: Given, to: Wanted): Beside {
  return to.indices === undefined ? 'none' : from.indices === undefined ? 'own' : 'given';
}

const digit = (element: string, shift: string, bits: number): string =>
  `((unsigned int)(ordered(${element}) >> ${shift}) & ${2 ** bits - 1}u)`;

/** Sorts each row, in as many passes as its keys have bytes in which they differ. */
function rowText(form: KeyForm, beside: Beside): string {
  const passes = bitsOf(form.dtype) / 8;
  const isWith = beside !== 'none';
  const params = [
    'const Element* x, Element* y, Element* z',
    ...(beside === 'given' ? ['const int* places'] : []),
    ...(isWith ? ['int* yPlaces, int* zPlaces'] : []),
    'const int rows, const int length',
  ];
  const number = beside === 'given' ? 'fromPlaces[at]' : 'fromPlaces ? fromPlaces[at] : at';
  return `${keyText(form)}
extern "C" __global__ void sortRow(${params.join(', ')}) {
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long base = (long long)row * length;
    unsigned int counts[${passes}][256] = {};
    const Element* from = x + base;
    ${isWith ? `const int* fromPlaces = ${beside === 'given' ? 'places + base' : 'nullptr'};` : ''}
    for (int at = 0; at < length; at++) {
      const Key key = ordered(from[at]);
      ${Array.from({ length: passes }, (_, pass) => `counts[${pass}][(unsigned int)(key >> ${8 * pass}) & 255u]++;`).join(' ')}
    }
    bool isNeeded[${passes}];
    int needed = 0;
    for (int pass = 0; pass < ${passes}; pass++) {
      isNeeded[pass] = counts[pass][${digit('from[0]', '8 * pass', 8)}] != (unsigned int)length;
      needed += isNeeded[pass];
    }
    if (needed == 0) {
      for (int at = 0; at < length; at++) { y[base + at] = from[at]; ${isWith ? `yPlaces[base + at] = ${number};` : ''} }
    }
    for (int pass = 0; pass < ${passes}; pass++) {
      if (!isNeeded[pass]) continue;
      needed--;
      Element* to = (needed % 2 == 0 ? y : z) + base;
      ${isWith ? 'int* toPlaces = (needed % 2 == 0 ? yPlaces : zPlaces) + base;' : ''}
      unsigned int* next = counts[pass];
      unsigned int before = 0;
      for (int one = 0; one < 256; one++) { const unsigned int count = next[one]; next[one] = before; before += count; }
      for (int at = 0; at < length; at++) {
        const Element element = from[at];
        const unsigned int goal = next[${digit('element', '8 * pass', 8)}]++;
        to[goal] = element; ${isWith ? `toPlaces[goal] = ${number};` : ''}
      }
      from = to; ${isWith ? 'fromPlaces = toPlaces;' : ''}
    }
  }
}
`;
}

/** `bits[row][chunk]`: the bits in which the keys of a chunk differ from the first key of the row. */
function bitsText(form: KeyForm): string {
  return `${keyText(form)}
extern "C" __global__ void findBits(const Element* x, Key* bits, const int rows, const int length, const int chunk) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    const Key first = ordered(from[0]);
    Key found = 0;
    for (int at = start; at < end; at++) found |= ordered(from[at]) ^ first;
    bits[(long long)row * gridDim.x + blockIdx.x] = found;
  }
}
`;
}

/** `shiftOf`: the bits below the highest ones in which any two keys of a row differ, by which the row is cut into buckets. */
function shiftText(form: KeyForm): string {
  const isLong = bitsOf(form.dtype) === 64;
  return `
__device__ __forceinline__ int shiftOf(const Key* bits, const int chunks) {
  Key all = 0;
  for (int one = 0; one < chunks; one++) all |= bits[one];
  return max(0, ${isLong ? '64 - __clzll((long long)all)' : '32 - __clz((int)all)'} - ${BUCKET_BITS});
}
`;
}

/** Counts the elements of each chunk of each row that belong to each bucket: `counts[row][chunk][bucket]`. */
function countText(form: KeyForm): string {
  const bucket = (element: string): string => digit(element, 'shift', BUCKET_BITS);
  // Two tables in turn: equal neighbours would wait for each other's count.
  return `${keyText(form)}${shiftText(form)}
extern "C" __global__ void countChunk(const Element* x, const Key* bits, unsigned int* counts, const int rows, const int length, const int chunk) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    const int shift = shiftOf(bits + (long long)row * gridDim.x, gridDim.x);
    unsigned int own[2][${BUCKETS}] = {};
    int at = start;
    for (; at < end - 1; at += 2) { own[0][${bucket('from[at]')}]++; own[1][${bucket('from[at + 1]')}]++; }
    if (at < end) own[0][${bucket('from[at]')}]++;
    unsigned int* to = counts + ((long long)row * gridDim.x + blockIdx.x) * ${BUCKETS};
    for (int one = 0; one < ${BUCKETS}; one++) to[one] = own[0][one] + own[1][one];
  }
}
`;
}

/** Moves each chunk's elements, in order, to their buckets, behind those of the chunks before: `starts[row][bucket]`. */
function moveText(form: KeyForm, beside: Beside): string {
  const isWith = beside !== 'none';
  const params = [
    'const Element* x, Element* y',
    ...(beside === 'given' ? ['const int* places'] : []),
    ...(isWith ? ['int* newPlaces'] : []),
    'const Key* bits, const unsigned int* counts, unsigned int* starts, const int rows, const int length, const int chunk',
  ];
  return `${keyText(form)}${shiftText(form)}
extern "C" __global__ void moveChunk(${params.join(', ')}) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start), own = blockIdx.x, chunks = gridDim.x;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const long long base = (long long)row * length;
    const int shift = shiftOf(bits + (long long)row * chunks, chunks);
    unsigned int next[${BUCKETS}] = {}, totals[${BUCKETS}] = {};
    const unsigned int* given = counts + (long long)row * chunks * ${BUCKETS};
    for (int one = 0; one < chunks; one++, given += ${BUCKETS}) {
      if (one == own) for (int at = 0; at < ${BUCKETS}; at++) next[at] = totals[at];
      for (int at = 0; at < ${BUCKETS}; at++) totals[at] += given[at];
    }
    unsigned int before = 0;
    unsigned int* first = starts + (long long)row * ${BUCKETS + 1};
    for (int at = 0; at < ${BUCKETS}; at++) { if (own == 0) first[at] = before; next[at] += before; before += totals[at]; }
    if (own == 0) first[${BUCKETS}] = before;
    const Element* from = x + base;
    for (int at = start; at < end; at++) {
      const Element element = from[at];
      const unsigned int goal = next[${digit('element', 'shift', BUCKET_BITS)}]++;
      y[base + goal] = element; ${isWith ? `newPlaces[base + goal] = ${beside === 'given' ? 'places[base + at]' : 'at'};` : ''}
    }
  }
}
`;
}

/**
 * Sorts a bucket by the bits of its keys that come next, as many as tell most elements apart, and puts the few elements into order that then still
 * are not; if they are many, the bucket is sorted by all bits.
 */
function bucketText(form: KeyForm, isWith: boolean): string {
  const [params, both] = isWith ? [', int* places, int* newPlaces', ', places, newPlaces'] : ['', ''];
  const isLong = bitsOf(form.dtype) === 64;
  return `${keyText(form)}${shiftText(form)}
__device__ bool moveBy(const Element* x, Element* y${isWith ? ', const int* places, int* newPlaces' : ''}, const int length, const int shift, const int width) {
  const unsigned int mask = (1u << width) - 1u;
  unsigned int next[2][${BUCKETS}];
  for (unsigned int one = 0; one <= mask; one++) next[0][one] = next[1][one] = 0;
  int at = 0;
  for (; at < length - 1; at += 2) {
    next[0][(unsigned int)(ordered(x[at]) >> shift) & mask]++; next[1][(unsigned int)(ordered(x[at + 1]) >> shift) & mask]++;
  }
  if (at < length) next[0][(unsigned int)(ordered(x[at]) >> shift) & mask]++;
  const unsigned int some = (unsigned int)(ordered(x[0]) >> shift) & mask;
  if (next[0][some] + next[1][some] == (unsigned int)length) return false;
  unsigned int before = 0;
  for (unsigned int one = 0; one <= mask; one++) { const unsigned int count = next[0][one] + next[1][one]; next[0][one] = before; before += count; }
  for (int one = 0; one < length; one++) {
    const Element element = x[one];
    const unsigned int goal = next[0][(unsigned int)(ordered(element) >> shift) & mask]++;
    y[goal] = element; ${isWith ? 'newPlaces[goal] = places[one];' : ''}
  }
  return true;
}
/* Whether it took at most so many moves. */
__device__ bool insertAll(Element* y${isWith ? ', int* places' : ''}, const int length, const long long most) {
  long long moves = 0;
  for (int at = 1; at < length; at++) {
    const Element element = y[at];
    const Key key = ordered(element);
    if (!(ordered(y[at - 1]) > key)) continue;
    ${isWith ? 'const int place = places[at];' : ''}
    int to = at;
    do { y[to] = y[to - 1]; ${isWith ? 'places[to] = places[to - 1];' : ''} to--; } while (to > 0 && ordered(y[to - 1]) > key);
    y[to] = element; ${isWith ? 'places[to] = place;' : ''}
    moves += at - to;
    if (moves > most) return false;
  }
  return true;
}
/* Sorts by the bits from low to high. Whether the elements are in y then. */
__device__ bool sortBits(Element* x, Element* y${params}, const int length, const int low, const int high) {
  const int widest = length < ${LEAST_WIDE} ? ${NARROW_BITS} : ${BUCKET_BITS};
  const int passes = (high - low + widest - 1) / widest, width = (high - low + passes - 1) / passes;
  bool isInY = false;
  for (int shift = low; shift < high; shift += width) {
    isInY ^= isInY ? moveBy(y, x${isWith ? ', newPlaces, places' : ''}, length, shift, width) : moveBy(x, y${both}, length, shift, width);
  }
  return isInY;
}
__device__ __forceinline__ void copyAll(const Element* x, Element* y${isWith ? ', const int* places, int* newPlaces' : ''}, const int length) {
  for (int at = 0; at < length; at++) { y[at] = x[at]; ${isWith ? 'newPlaces[at] = places[at];' : ''} }
}
extern "C" __global__ void sortBucket(Element* x, Element* y${params}, const Key* bits, const unsigned int* starts,
    const int rows, const int length, const int chunks) {
  /* Neighbouring buckets are often the large ones, and a thread takes neighbouring blocks. */
  const int bucket = blockIdx.x * ${BUCKET_STRIDE} % ${BUCKETS};
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const unsigned int* own = starts + (long long)row * ${BUCKETS + 1} + bucket;
    const long long first = (long long)row * length + own[0];
    const int count = own[1] - own[0];
    if (count == 0) continue;
    const int high = shiftOf(bits + (long long)row * chunks, chunks);
    Element* from = x + first; Element* to = y + first;
    ${isWith ? 'int* fromPlaces = places + first; int* toPlaces = newPlaces + first;' : ''}
    const bool isSmall = count <= ${MOST_INSERTED};
    if (high == 0 || isSmall) {
      copyAll(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count);
      if (high > 0) insertAll(to${isWith ? ', toPlaces' : ''}, count, (long long)count * count);
      continue;
    }
    const int low = ${isLong ? `max(0, high - ${2 * BUCKET_BITS})` : '0'};
    if (!sortBits(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count, low, high)) copyAll(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count);
    if (low == 0 || insertAll(to${isWith ? ', toPlaces' : ''}, count, ${MOST_MOVES}ll * count)) continue;
    if (sortBits(to, from${isWith ? ', toPlaces, fromPlaces' : ''}, count, 0, high)) copyAll(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count);
  }
}
`;
}
