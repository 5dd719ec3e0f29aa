// Radix sorts on a CPU device. A row that fits in a core's cache is sorted by one thread, by 8 bits of the keys a pass, from the lowest ones up. A longer
// one is cut into chunks, which move their elements, stably, to buckets by the highest bits of the keys' distances from the least one; then each bucket is sorted by one thread.
import type { DType } from '../core/elements/dtype.js';
import { type Beside, bitsOf, type KeyForm, keyText, plainKeyText } from './radix-text.js';
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

/** Buckets of a long row: of 10^6 elements, one fits in the first cache of a core. Keys of floats crowd below the largest, so there are more of them. */
const bucketBitsOf = (dtype: DType): number => (bitsOf(dtype) < 64 && !dtype.includes('f') ? 9 : 10);
const bucketsOf = ({ dtype }: KeyForm): number => 2 ** bucketBitsOf(dtype);
/** Odd, so that every bucket is one of a block. */
const BUCKET_STRIDE = 331;
/** In two passes of so many bits, a bucket of integers of 32 bits is sorted. */
const WIDE_BITS = 12;
/** Shorter buckets are sorted by fewer bits a pass: their elements would be fewer than the counters. */
const LEAST_WIDE = 768;
const NARROW_BITS = 8;
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
  const buckets = bucketsOf(form);
  using range = target.temporary([count, chunks, 3], bitsOf(form.dtype) === 64 ? 'u64' : 'u32');
  using counts = target.temporary([count, chunks, buckets], 'u32');
  using starts = target.temporary([count, buckets + 1], 'u32');

  const finding = new Arguments();
  finding.array('x', from.keys);
  finding.array('range', range, 'output');
  finding.numbers(numbers);
  finding.launchCuda(recorder, 'sort', key, [chunks, rows], 1, 'findRange', () => rangeText(form));

  const counting = new Arguments();
  counting.array('x', from.keys);
  counting.array('range', range);
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
  moving.array('range', range);
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
  sorting.array('range', range);
  sorting.array('starts', starts);
  sorting.numbers({ rows: count, length, chunks });
  sorting.launchCuda(recorder, 'sort', key, [buckets, rows], 1, 'sortBucket', () => bucketText(form, beside !== 'none'));
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

/** `range[row][chunk]`: the least and the largest key of a chunk, and whether an element is special. */
function rangeText(form: KeyForm): string {
  return `${keyText(form)}${plainKeyText(form)}
extern "C" __global__ void findRange(const Element* x, Key* range, const int rows, const int length, const int chunk) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    Key least = ordered(from[start]), most = least, special = isSpecial(from[start]);
    for (int at = start + 1; at < end; at++) {
      const Key key = ordered(from[at]);
      least = key < least ? key : least;
      most = key > most ? key : most;
      special |= isSpecial(from[at]);
    }
    Key* to = range + ((long long)row * gridDim.x + blockIdx.x) * 3;
    to[0] = least; to[1] = most; to[2] = special;
  }
}
`;
}

/** `leastOf`: the least key of a row. `arePlain`: whether it has no special element. `shiftOf`: how many bits of a key's distance from it are below those by which the row is cut into buckets. */
function shiftText(form: KeyForm): string {
  const isLong = bitsOf(form.dtype) === 64;
  return `${plainKeyText(form)}
__device__ __forceinline__ Key leastOf(const Key* range, const int chunks) {
  Key least = range[0];
  for (int one = 1; one < chunks; one++) least = range[3 * one] < least ? range[3 * one] : least;
  return least;
}
__device__ __forceinline__ bool arePlain(const Key* range, const int chunks) {
  Key special = 0;
  for (int one = 0; one < chunks; one++) special |= range[3 * one + 2];
  return special == 0;
}
__device__ __forceinline__ int shiftOf(const Key* range, const int chunks, const Key least) {
  Key most = 0;
  for (int one = 0; one < chunks; one++) { const Key next = range[3 * one + 1] - least; most = next > most ? next : most; }
  return max(0, ${isLong ? '64 - __clzll((long long)most)' : '32 - __clz((int)most)'} - ${bucketBitsOf(form.dtype)});
}
`;
}

/** Statements for a row: of floats, those that suit it. Keys take half of the time of a pass, and few floats are NaN or -0. */
function either({ dtype }: KeyForm, range: string, text: (isPlain: boolean) => string): string {
  return dtype.includes('f') ? `if (arePlain(${range})) { ${text(true)} } else { ${text(false)} }` : text(false);
}

/** Counts the elements of each chunk of each row that belong to each bucket: `counts[row][chunk][bucket]`. */
function countText(form: KeyForm): string {
  const buckets = bucketsOf(form);
  const bucket = (element: string): string => `(unsigned int)((keyOf<isPlain>(${element}) - least) >> shift)`;
  // Two tables in turn: equal neighbours would wait for each other's count.
  return `${keyText(form)}${shiftText(form)}
template <bool isPlain>
__device__ __forceinline__ void countAll(const Element* from, unsigned int (*tallies)[${buckets}], const int start, const int end, const Key least, const int shift) {
  int at = start;
  for (; at < end - 1; at += 2) { tallies[0][${bucket('from[at]')}]++; tallies[1][${bucket('from[at + 1]')}]++; }
  if (at < end) tallies[0][${bucket('from[at]')}]++;
}
extern "C" __global__ void countChunk(const Element* x, const Key* range, unsigned int* counts, const int rows, const int length, const int chunk) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    const Key* own = range + (long long)row * gridDim.x * 3;
    const Key least = leastOf(own, gridDim.x);
    const int shift = shiftOf(own, gridDim.x, least);
    unsigned int tallies[2][${buckets}] = {};
    ${either(form, 'own, gridDim.x', (isPlain) => `countAll<${isPlain}>(from, tallies, start, end, least, shift);`)}
    unsigned int* to = counts + ((long long)row * gridDim.x + blockIdx.x) * ${buckets};
    for (int one = 0; one < ${buckets}; one++) to[one] = tallies[0][one] + tallies[1][one];
  }
}
`;
}

/** Moves each chunk's elements, in order, to their buckets, behind those of the chunks before: `starts[row][bucket]`. */
function moveText(form: KeyForm, beside: Beside): string {
  const isWith = beside !== 'none';
  const buckets = bucketsOf(form);
  const params = [
    'const Element* x, Element* y',
    ...(beside === 'given' ? ['const int* places'] : []),
    ...(isWith ? ['int* newPlaces'] : []),
    'const Key* range, const unsigned int* counts, unsigned int* starts, const int rows, const int length, const int chunk',
  ];
  const number = beside === 'given' ? 'places[at]' : 'at';
  const placed = isWith ? `, ${beside === 'given' ? 'places + base' : 'nullptr'}, newPlaces + base` : '';
  return `${keyText(form)}${shiftText(form)}
template <bool isPlain>
__device__ __forceinline__ void moveAll(const Element* from, Element* to${isWith ? ', const int* places, int* newPlaces' : ''}, unsigned int* next,
    const int start, const int end, const Key least, const int shift) {
  for (int at = start; at < end; at++) {
    const Element element = from[at];
    const unsigned int goal = next[(unsigned int)((keyOf<isPlain>(element) - least) >> shift)]++;
    to[goal] = element; ${isWith ? `newPlaces[goal] = ${number};` : ''}
  }
}
extern "C" __global__ void moveChunk(${params.join(', ')}) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start), own = blockIdx.x, chunks = gridDim.x;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const long long base = (long long)row * length;
    const Key* ranges = range + (long long)row * chunks * 3;
    const Key least = leastOf(ranges, chunks);
    const int shift = shiftOf(ranges, chunks, least);
    unsigned int next[${buckets}] = {}, totals[${buckets}] = {};
    const unsigned int* given = counts + (long long)row * chunks * ${buckets};
    for (int one = 0; one < chunks; one++, given += ${buckets}) {
      if (one == own) for (int at = 0; at < ${buckets}; at++) next[at] = totals[at];
      for (int at = 0; at < ${buckets}; at++) totals[at] += given[at];
    }
    unsigned int before = 0;
    unsigned int* first = starts + (long long)row * ${buckets + 1};
    for (int at = 0; at < ${buckets}; at++) { if (own == 0) first[at] = before; next[at] += before; before += totals[at]; }
    if (own == 0) first[${buckets}] = before;
    ${either(form, 'ranges, chunks', (isPlain) => `moveAll<${isPlain}>(x + base, y + base${placed}, next, start, end, least, shift);`)}
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
  const buckets = bucketsOf(form);
  return `${keyText(form)}${shiftText(form)}
/* Moves elements to where the counts of their digits say. */
template <bool isPlain>
__device__ __forceinline__ void moveBy(const Element* x, Element* y${isWith ? ', const int* places, int* newPlaces' : ''}, const int length, const Key least,
    unsigned int* next, const int shift, const unsigned int mask) {
  unsigned int before = 0;
  for (unsigned int one = 0; one <= mask; one++) { const unsigned int count = next[one]; next[one] = before; before += count; }
  for (int one = 0; one < length; one++) {
    const Element element = x[one];
    const unsigned int goal = next[(unsigned int)((keyOf<isPlain>(element) - least) >> shift) & mask]++;
    y[goal] = element; ${isWith ? 'newPlaces[goal] = places[one];' : ''}
  }
}
/* Whether it took at most so many moves. */
template <bool isPlain>
__device__ bool insertAll(Element* y${isWith ? ', int* places' : ''}, const int length, const long long most) {
  long long moves = 0;
  for (int at = 1; at < length; at++) {
    const Element element = y[at];
    const Key key = keyOf<isPlain>(element);
    if (!(keyOf<isPlain>(y[at - 1]) > key)) continue;
    ${isWith ? 'const int place = places[at];' : ''}
    int to = at;
    do { y[to] = y[to - 1]; ${isWith ? 'places[to] = places[to - 1];' : ''} to--; } while (to > 0 && keyOf<isPlain>(y[to - 1]) > key);
    y[to] = element; ${isWith ? 'places[to] = place;' : ''}
    moves += at - to;
    if (moves > most) return false;
  }
  return true;
}
/* Sorts by the bits from low to high: the digits of two passes are counted at once. Whether the elements are in y then. */
template <bool isPlain>
__device__ bool sortBits(Element* x, Element* y${params}, const int length, const Key least, const int low, const int high) {
  const int widest = length < ${LEAST_WIDE} ? ${NARROW_BITS} : ${WIDE_BITS};
  const int passes = (high - low + widest - 1) / widest, width = (high - low + passes - 1) / passes;
  const unsigned int mask = (1u << width) - 1u;
  unsigned int counts[2][${2 ** WIDE_BITS}];
  bool isInY = false;
  for (int shift = low; shift < high; shift += 2 * width) {
    const bool isPair = shift + width < high;
    const int other = isPair ? shift + width : shift;
    Element* from = isInY ? y : x;
    for (unsigned int one = 0; one <= mask; one++) counts[0][one] = counts[1][one] = 0;
    for (int at = 0; at < length; at++) {
      const Key key = keyOf<isPlain>(from[at]) - least;
      counts[0][(unsigned int)(key >> shift) & mask]++; counts[1][(unsigned int)(key >> other) & mask]++;
    }
    const Key first = keyOf<isPlain>(from[0]) - least;
    const bool isNeeded[2] = {counts[0][(unsigned int)(first >> shift) & mask] != (unsigned int)length,
                              isPair && counts[1][(unsigned int)(first >> other) & mask] != (unsigned int)length};
    for (int pass = 0; pass < 2; pass++) {
      if (!isNeeded[pass]) continue;
      if (isInY) moveBy<isPlain>(y, x${isWith ? ', newPlaces, places' : ''}, length, least, counts[pass], pass == 0 ? shift : other, mask);
      else moveBy<isPlain>(x, y${both}, length, least, counts[pass], pass == 0 ? shift : other, mask);
      isInY = !isInY;
    }
  }
  return isInY;
}
__device__ __forceinline__ void copyAll(const Element* x, Element* y${isWith ? ', const int* places, int* newPlaces' : ''}, const int length) {
  for (int at = 0; at < length; at++) { y[at] = x[at]; ${isWith ? 'newPlaces[at] = places[at];' : ''} }
}
template <bool isPlain>
__device__ __forceinline__ void sortOne(Element* from, Element* to${isWith ? ', int* fromPlaces, int* toPlaces' : ''}, const int count, const Key least, const int high) {
  const bool isSmall = count <= ${MOST_INSERTED};
  if (high == 0 || isSmall) {
    copyAll(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count);
    if (high > 0) insertAll<isPlain>(to${isWith ? ', toPlaces' : ''}, count, (long long)count * count);
    return;
  }
  const int low = ${isLong ? `max(0, high - ${2 * WIDE_BITS})` : '0'};
  if (!sortBits<isPlain>(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count, least, low, high)) copyAll(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count);
  if (low == 0 || insertAll<isPlain>(to${isWith ? ', toPlaces' : ''}, count, ${MOST_MOVES}ll * count)) return;
  if (sortBits<isPlain>(to, from${isWith ? ', toPlaces, fromPlaces' : ''}, count, least, 0, high)) copyAll(from, to${isWith ? ', fromPlaces, toPlaces' : ''}, count);
}
extern "C" __global__ void sortBucket(Element* x, Element* y${params}, const Key* range, const unsigned int* starts,
    const int rows, const int length, const int chunks) {
  /* Neighbouring buckets are often the large ones, and a thread takes neighbouring blocks. */
  const int bucket = blockIdx.x * ${BUCKET_STRIDE} % ${buckets};
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const unsigned int* own = starts + (long long)row * ${buckets + 1} + bucket;
    const long long first = (long long)row * length + own[0];
    const int count = own[1] - own[0];
    if (count == 0) continue;
    const Key* ranges = range + (long long)row * chunks * 3;
    const Key least = leastOf(ranges, chunks);
    const int high = shiftOf(ranges, chunks, least);
    ${either(form, 'ranges, chunks', (isPlain) => `sortOne<${isPlain}>(x + first, y + first${isWith ? ', places + first, newPlaces + first' : ''}, count, least, high);`)}
  }
}
`;
}
