// CUDA C++ of radix sorts: elements are counted by 8 bits of their keys, and moved, in order, to the places that the counts give.
import { type DType, DTYPES } from '../core/elements/dtype.js';

/** Threads of a block: at least one for each of the 256 digits. */
export const THREADS = 256;
/** Counters of each digit, so that equal digits of a warp do not wait for each other. */
export const COPIES = 8;
/** Elements that a thread reads before it uses the first. */
const READS = 8;

/** What distinguishes the texts for elements of a type. */
export interface KeyForm {
  readonly dtype: DType;
  readonly isDescending: boolean;
}

/** The bits of a key. */
export const bitsOf = (dtype: DType): number => 8 * DTYPES[dtype].byteSize;
/** Elements that a block moves at once: as many as shared memory and registers hold for at least two blocks of a multiprocessor. */
export const tileOf = (dtype: DType): number => THREADS * (bitsOf(dtype) === 64 ? 14 : 24);

const UNSIGNED: Readonly<Record<number, string>> = {
  8: 'unsigned char',
  16: 'unsigned short',
  32: 'unsigned int',
  64: 'unsigned long long',
};
/** The bits of infinity; those of NaN are more. */
const INFINITIES: Readonly<Partial<Record<DType, bigint>>> = { f16: 0x7c00n, bf16: 0x7f80n, f32: 0x7f800000n, f64: 0x7ff0n << 48n };

/** `ordered`, which gives elements keys that sort as unsigned numbers: NaN the largest, and both zeros the same. */
export function keyText({ dtype, isDescending }: KeyForm): string {
  const bits = bitsOf(dtype);
  const type = bits === 64 ? 'unsigned long long' : 'unsigned int';
  const suffix = bits === 64 ? 'ull' : 'u';
  const hex = (value: bigint): string => `0x${value.toString(16)}${suffix}`;
  const all = hex(2n ** BigInt(bits) - 1n);
  const sign = hex(2n ** BigInt(bits - 1));
  const isFloat = dtype.includes('f');
  // Without branches, which a CPU would guess wrong for half of mixed signs, and without selections, for which g++ makes no vectors of a search for the least.
  const float = `
  const Key size = key & ~${sign} & ${all};
  key = key ^ (((0 - (key >> ${bits - 1})) & ${all}) | ${sign});
  key += element.bits == ${sign};`;
  const ordered = isDescending ? `~key & ${all}` : 'key';
  const result = isFloat ? `(${ordered}) | ((0 - (Key)(size > ${hex(INFINITIES[dtype] ?? 0n)})) & ${all})` : ordered;
  const integer = dtype.startsWith('i') ? `\n  key = key ^ ${sign};` : '';
  // The element with the largest key.
  const last = isFloat ? `${all} & ~${sign}` : `${isDescending ? '0u' : all} ^ ${dtype.startsWith('i') ? sign : '0u'}`;
  return `
typedef ${type} Key;
struct Element { ${UNSIGNED[bits]} bits; };
#define LAST (${UNSIGNED[bits]})(${last})
__device__ __forceinline__ Key ordered(const Element element) {
  Key key = element.bits;${isFloat ? float : integer}
  return ${result};
}
`;
}

/**
 * `keyOf<isPlain>`: as `ordered`, but if `isPlain`, for elements of which none is NaN or -0. `isSpecial`: whether an element is one of these. Follows
 * the text of `keyText`.
 */
export function plainKeyText({ dtype, isDescending }: KeyForm): string {
  const bits = bitsOf(dtype);
  const hex = (value: bigint): string => `(Key)0x${value.toString(16)}ull`;
  const all = hex(2n ** BigInt(bits) - 1n);
  const sign = hex(2n ** BigInt(bits - 1));
  const isFloat = dtype.includes('f');
  // g++ moves the arithmetic that `keyText` has here into vectors, one element at a time, through memory.
  const plain = `(key & ${sign}) != 0 ? ~key & ${all} : key ^ ${sign}`;
  return `
template <bool isPlain> __device__ __forceinline__ Key keyOf(const Element element) {
  ${isFloat ? `if (isPlain) { const Key key = element.bits; return ${isDescending ? `~(${plain}) & ${all}` : plain}; }` : ''}
  return ordered(element);
}
__device__ __forceinline__ Key isSpecial(const Element element) {
  ${isFloat ? `const Key key = element.bits; return (Key)((key & ~${sign} & ${all}) > ${hex(INFINITIES[dtype] ?? 0n)}) | (Key)(key == ${sign});` : 'return 0;'}
}
`;
}

/** `digitOf`: 8 bits of an element's key. */
export const DIGIT: string = `
__device__ __forceinline__ unsigned int digitOf(const Element element, const int shift) { return (unsigned int)(ordered(element) >> shift) & 255u; }
`;

/** The sum of what the threads before this one give. Every thread of the block calls it. */
export const BEFORE: string = `
__device__ __forceinline__ unsigned int before(const unsigned int value, unsigned int* sums) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  unsigned int sum = value;
  #pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const unsigned int other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  unsigned int ahead = 0;
  #pragma unroll
  for (int other = 0; other < ${THREADS / 32}; other++) if (other < warp) ahead += sums[other];
  __syncthreads();
  return ahead + sum - value;
}
`;

/** Runs a statement for the elements of a thread in a chunk, `READS` of which are read at once. */
export function forEachElement(statement: (element: string) => string): string {
  return `
    int at = start + t;
    for (; at < end - ${(READS - 1) * THREADS}; at += ${READS * THREADS}) {
      Element several[${READS}];
      #pragma unroll
      for (int n = 0; n < ${READS}; n++) several[n] = from[at + n * ${THREADS}];
      #pragma unroll
      for (int n = 0; n < ${READS}; n++) ${statement('several[n]')}
    }
    for (; at < end; at += ${THREADS}) ${statement('from[at]')}`;
}

/** Counts the digits of each chunk of each row: `counts[row][digit][chunk]`. */
export function countText(form: KeyForm): string {
  return `${keyText(form)}${DIGIT}
extern "C" __global__ void __launch_bounds__(${THREADS}) sortCount(
    const Element* x, unsigned int* counts, const int shift, const int rows, const int length, const int chunk) {
  __shared__ unsigned int bins[256 * ${COPIES}];
  const int t = threadIdx.x, start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  unsigned int* own = bins + (t & ${COPIES - 1});
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length;
    for (int at = t; at < 256 * ${COPIES}; at += ${THREADS}) bins[at] = 0;
    __syncthreads();${forEachElement((element) => `atomicAdd(own + digitOf(${element}, shift) * ${COPIES}, 1u);`)}
    __syncthreads();
    if (t < 256) {
      unsigned int sum = 0;
      for (int copy = 0; copy < ${COPIES}; copy++) sum += bins[t * ${COPIES} + copy];
      counts[((long long)row * 256 + t) * gridDim.x + blockIdx.x] = sum;
    }
    __syncthreads();
  }
}
`;
}

/** For each digit (block along x) of each row, makes of the chunks' counts those of the chunks before, and their sum. */
export const OFFSETS_TEXT: string = `${BEFORE}
extern "C" __global__ void __launch_bounds__(${THREADS}) sortOffsets(unsigned int* counts, unsigned int* totals, const int rows, const int chunks) {
  __shared__ unsigned int sums[${THREADS / 32}];
  __shared__ unsigned int carried;
  const int t = threadIdx.x;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    unsigned int* own = counts + ((long long)row * gridDim.x + blockIdx.x) * chunks;
    unsigned int carry = 0;
    for (int first = 0; first < chunks; first += ${THREADS}) {
      const int at = first + t;
      const unsigned int count = at < chunks ? own[at] : 0u;
      const unsigned int ahead = carry + before(count, sums);
      if (at < chunks) own[at] = ahead;
      if (t == ${THREADS - 1}) carried = ahead + count;
      __syncthreads();
      carry = carried;
    }
    if (t == 0) totals[row * gridDim.x + blockIdx.x] = carry;
    __syncthreads();
  }
}
`;

/** What is moved beside the keys: nothing, the numbers of the elements, or numbers that are there already. */
export type Beside = 'none' | 'own' | 'given';

/**
 * Moves each chunk's elements, in order, to where their digits' elements go. Lanes of a warp find those with the same digit by the bits that all
 * set in a word of shared memory; most lanes of skewed elements have the digit of the first one, and find each other by a vote.
 */
export function moveText(form: KeyForm, beside: Beside, keepsKeys: boolean): string {
  const tile = tileOf(form.dtype);
  const items = tile / THREADS;
  const isWith = beside !== 'none';
  const params = [
    'const Element* x',
    ...(keepsKeys ? ['Element* y'] : []),
    ...(beside === 'given' ? ['const int* places'] : []),
    ...(isWith ? ['int* newPlaces'] : []),
    'const unsigned int* counts, const unsigned int* totals, const int shift, const int rows, const int length, const int chunk',
  ];
  const warps = THREADS / 32;
  const bytes = Math.max(tile * Math.max(bitsOf(form.dtype) / 8, isWith ? 4 : 1), warps * 1024);
  const each = (statements: string): string => `
      #pragma unroll
      for (int n = 0; n < ${items}; n++) { ${statements} }`;
  const number = beside === 'given' ? `32 * n < left ? places[base + tile + own + 32 * n] : 0` : `tile + own + 32 * n`;
  return `${keyText(form)}${DIGIT}${BEFORE}
extern "C" __global__ void __launch_bounds__(${THREADS}, 2) sortMove(${params.join(', ')}) {
  // Each warp's masks of the lanes with a digit, then the sorted tile.
  __shared__ unsigned long long slots[${bytes / 8}];
  __shared__ unsigned int warpCounts[${warps} * 256];
  __shared__ unsigned int offsets[256];
  __shared__ unsigned int sums[${warps}];
  Element* sorted = (Element*)slots;
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5, own = warp * ${32 * items} + lane;
  const int start = blockIdx.x * chunk, end = start + min(chunk, length - start);
  unsigned int* mine = warpCounts + warp * 256;
  unsigned int* masks = (unsigned int*)slots + warp * 256;
  const unsigned int lanesBelow = (1u << lane) - 1u;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const long long base = (long long)row * length;${keepsKeys ? '\n    Element* to = y + base;' : ''}${isWith ? '\n    int* toPlaces = newPlaces + base;' : ''}
    // Of thread t: where the next element with digit t goes.
    unsigned int next = before(totals[row * 256 + t], sums) + counts[((long long)row * 256 + t) * gridDim.x + blockIdx.x];
    for (int tile = start; tile < end; tile += ${tile}) {
      const int valid = min(${tile}, end - tile), left = valid - own;
      const Element* from = x + base + tile + own;
      Element keys[${items}];
      // The digit and, below it, the place in the sorted tile. What lies beyond the end sorts behind all others.
      unsigned int ranks[${items}];
      if (valid == ${tile}) {${each('keys[n] = from[32 * n];')}
      } else {${each('if (32 * n < left) keys[n] = from[32 * n]; else keys[n].bits = LAST;')}
      }
      for (int at = t; at < ${warps} * 256; at += ${THREADS}) warpCounts[at] = ((unsigned int*)slots)[at] = 0;
      __syncthreads();${each(`
        const unsigned int digit = digitOf(keys[n], shift);
        const bool isFirst = digit == __shfl_sync(0xffffffffu, digit, 0);
        unsigned int same = __ballot_sync(0xffffffffu, isFirst);
        if (!isFirst) atomicOr(masks + digit, 1u << lane);
        __syncwarp();
        if (!isFirst) same = masks[digit];
        const unsigned int earlier = mine[digit];
        const unsigned int lower = __popc(same & lanesBelow);
        ranks[n] = digit << 16 | (earlier + lower);
        __syncwarp();
        if (lower == 0) { mine[digit] = earlier + __popc(same); masks[digit] = 0; }
        __syncwarp();`)}
      __syncthreads();
      unsigned int total = 0;
      #pragma unroll
      for (int other = 0; other < ${warps}; other++) total += warpCounts[other * 256 + t];
      unsigned int first = before(total, sums);
      offsets[t] = next - first;
      next += total;
      #pragma unroll
      for (int other = 0; other < ${warps}; other++) {
        const unsigned int count = warpCounts[other * 256 + t];
        warpCounts[other * 256 + t] = first;
        first += count;
      }
      __syncthreads();${each(`
        ranks[n] = (ranks[n] & 0xffffu) + mine[ranks[n] >> 16];
        sorted[ranks[n]] = keys[n];`)}
      __syncthreads();${
        isWith
          ? `
      unsigned int goals[${items}];`
          : ''
      }${each(`
        const int at = t + n * ${THREADS};
        if (at < valid) {
          const Element key = sorted[at];
          const unsigned int goal = offsets[digitOf(key, shift)] + at;${keepsKeys ? ' to[goal] = key;' : ''}${isWith ? ' goals[n] = goal;' : ''}
        }`)}
      __syncthreads();${
        isWith
          ? `
      int* moved = (int*)slots;${each(`moved[ranks[n]] = ${number};`)}
      __syncthreads();${each(`const int at = t + n * ${THREADS}; if (at < valid) toPlaces[goals[n]] = moved[at];`)}
      __syncthreads();`
          : ''
      }
    }
  }
}
`;
}
