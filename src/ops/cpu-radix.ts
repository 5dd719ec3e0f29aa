// Radix sorts on a CPU device: elements are ordered, stably, by 8 or 11 bits of their keys, from the lowest ones up. A row that fits in a core's
// cache is sorted by one thread. A longer one is cut into chunks: each counts its digits, and moves its elements to the places that all counts give it.
import type { DType } from '../core/elements/dtype.js';
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

/** The bits that a pass of long rows looks at: 11, which take 3 passes for 32, where their counters fit in the first cache. */
const digitBits = (dtype: DType): number => (bitsOf(dtype) > 16 ? 11 : 8);

/** Sorts rows of `from`, as `radixSort` does on a GPU. */
export function cpuRadixSort(from: Given, to: Wanted, rows: Rows, isDescending: boolean, target: Target): void {
  const { dtype, length: total } = from.keys;
  const isWith = to.indices !== undefined;
  const passes = Math.ceil(bitsOf(dtype) / digitBits(dtype));
  const isShort = rows.length <= MOST_IN_CACHE;
  using otherKeys = isShort || passes > 1 ? target.temporary([total], dtype) : undefined;
  using ownKeys = (isShort || passes > 2) && to.keys === undefined ? target.temporary([total], dtype) : undefined;
  using otherIndices = isWith && (isShort || passes > 1) ? target.temporary([total], 'i32') : undefined;
  const last = { keys: to.keys ?? ownKeys, indices: to.indices };
  const other = { keys: otherKeys, indices: otherIndices };
  const form = { dtype, isDescending };
  if (isShort) sortInCache(from, last, other, rows, form, target);
  else {
    // Each pass writes to the other side than the one before, and the last pass only what is wanted.
    const written = Array.from({ length: passes }, (_, pass) => (pass === passes - 1 ? to : (passes - pass) % 2 === 0 ? other : last));
    sortChunks(from, written, rows, form, target);
  }
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

/** `sides`: where each pass writes. */
function sortChunks(from: Given, sides: readonly Wanted[], { count, length }: Rows, form: KeyForm, target: Target): void {
  const { recorder } = target;
  const chunk = Math.max(LEAST_CHUNK, Math.ceil(length / Math.max(1, Math.floor(MOST_CHUNKS / count))));
  const chunks = Math.ceil(length / chunk);
  const grid = [chunks, Math.min(count, MOST_ROWS)] as const;
  const key = `${form.isDescending}`;
  const bits = digitBits(form.dtype);
  using counts = target.temporary([count, chunks, 2 ** bits], 'u32');
  let read = from;
  for (const [pass, written] of sides.entries()) {
    const numbers = { shift: bits * pass, rows: count, length, chunk };
    const counting = new Arguments();
    counting.array('x', read.keys);
    counting.array('counts', counts, 'output');
    counting.numbers(numbers);
    counting.launchCuda(recorder, 'sort', key, grid, 1, 'countChunk', () => countText(form));
    const moving = new Arguments();
    moving.array('x', read.keys);
    if (written.keys !== undefined) moving.array('y', written.keys, 'output');
    if (written.indices !== undefined && read.indices !== undefined) moving.array('places', read.indices);
    if (written.indices !== undefined) moving.array('newPlaces', written.indices, 'output');
    moving.array('counts', counts);
    moving.numbers(numbers);
    const [beside, keepsKeys] = [besideOf(read, written), written.keys !== undefined];
    moving.launchCuda(recorder, 'sort', key, grid, 1, 'moveChunk', () => moveText(form, beside, keepsKeys));
    read = { keys: written.keys ?? read.keys, indices: written.indices };
  }
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

/** Counts the digits of each chunk of each row: `counts[row][chunk][digit]`. */
function countText(form: KeyForm): string {
  const bits = digitBits(form.dtype);
  const kinds = 2 ** bits;
  // Two tables in turn: equal neighbours would wait for each other's count.
  return `${keyText(form)}
extern "C" __global__ void countChunk(const Element* x, unsigned int* counts, const int shift, const int rows, const int length, const int chunk) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    unsigned int own[2][${kinds}] = {};
    int at = start;
    for (; at < end - 1; at += 2) { own[0][${digit('from[at]', 'shift', bits)}]++; own[1][${digit('from[at + 1]', 'shift', bits)}]++; }
    if (at < end) own[0][${digit('from[at]', 'shift', bits)}]++;
    unsigned int* to = counts + ((long long)row * gridDim.x + blockIdx.x) * ${kinds};
    for (int one = 0; one < ${kinds}; one++) to[one] = own[0][one] + own[1][one];
  }
}
`;
}

/** Moves each chunk's elements, in order, behind those with smaller digits and those of the chunks before. */
function moveText(form: KeyForm, beside: Beside, keepsKeys: boolean): string {
  const isWith = beside !== 'none';
  const bits = digitBits(form.dtype);
  const kinds = 2 ** bits;
  const params = [
    'const Element* x',
    ...(keepsKeys ? ['Element* y'] : []),
    ...(beside === 'given' ? ['const int* places'] : []),
    ...(isWith ? ['int* newPlaces'] : []),
    'const unsigned int* counts, const int shift, const int rows, const int length, const int chunk',
  ];
  return `${keyText(form)}
extern "C" __global__ void moveChunk(${params.join(', ')}) {
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start), own = blockIdx.x, chunks = gridDim.x;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const long long base = (long long)row * length;
    unsigned int next[${kinds}] = {}, totals[${kinds}] = {};
    const unsigned int* given = counts + (long long)row * chunks * ${kinds};
    for (int one = 0; one < chunks; one++, given += ${kinds}) {
      if (one == own) for (int at = 0; at < ${kinds}; at++) next[at] = totals[at];
      for (int at = 0; at < ${kinds}; at++) totals[at] += given[at];
    }
    unsigned int before = 0;
    for (int at = 0; at < ${kinds}; at++) { next[at] += before; before += totals[at]; }
    const Element* from = x + base;
    for (int at = start; at < end; at++) {
      const Element element = from[at];
      const unsigned int goal = next[${digit('element', 'shift', bits)}]++;
      ${keepsKeys ? 'y[base + goal] = element;' : ''} ${isWith ? `newPlaces[base + goal] = ${beside === 'given' ? 'places[base + at]' : 'at'};` : ''}
    }
  }
}
`;
}
