// CUDA C++ of running sums and products of long rows: a block finds the result of a chunk of a row, and then another one scans the chunk from the
// result of the chunks before it. Warps read and store neighbours.
import type { DType } from '../core/elements/dtype.js';
import { storageType } from '../compiler/emission/cpp-text.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';

/** Threads of a block. */
export const BLOCK = 256;
const WARPS = BLOCK / 32;

/** What distinguishes the texts. */
export interface ScanForm {
  readonly operator: '+' | '*';
  readonly from: DType;
  readonly to: DType;
  /** Elements of a thread in each tile, which are `BLOCK` times as many. */
  readonly items: number;
  /** Whether a row has several chunks. */
  readonly isDivided: boolean;
}

/**
 * Elements that C does not convert as the library does. NVRTC has no header for 16 bits, and texts that run on CPUs have no PTX; what is stored is rounded
 * to nearest even.
 */
const CONVERSIONS: Readonly<Partial<Record<DType, string>>> = {
  bool: `
__device__ __forceinline__ bool widened_bool(const unsigned char bits) { return bits != 0; }
__device__ __forceinline__ unsigned char narrowed_bool(const float value) { return value != 0; }`,
  f16: `
__device__ __forceinline__ float widened_f16(const unsigned short bits) {
  const unsigned int size = (bits & 0x7fffu) << 13;
  const float value = size < 0x0f800000u ? __uint_as_float(size) * 5.192296858534828e33f : __uint_as_float(size | 0x7f800000u);
  return __uint_as_float(__float_as_uint(value) | (bits & 0x8000u) << 16);
}
__device__ __forceinline__ unsigned short narrowed_f16(const float value) {
  const unsigned int bits = __float_as_uint(value), size = bits & 0x7fffffffu;
  unsigned int half;
  if (size >= 0x47800000u) half = size > 0x7f800000u ? 0x7fffu : 0x7c00u;
  /* Below the normal numbers of 16 bits: the last bit of a number beside 0.5 is theirs. */
  else if (size < 0x38800000u) half = __float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u;
  else half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  return (unsigned short)(half | (bits >> 16 & 0x8000u));
}`,
  bf16: `
__device__ __forceinline__ float widened_bf16(const unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }
__device__ __forceinline__ unsigned short narrowed_bf16(const float value) {
  const unsigned int bits = __float_as_uint(value);
  return value != value ? 0x7fff : (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}`,
};

/** The type in which a scan to elements of a type calculates. */
export function sumType(to: DType): 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64' {
  const register = REGISTER_TYPE[to];
  return register === 'bool' ? 'i64' : register;
}

/** The type of sums in these kernels: those of unsigned integers wrap, and have the same bits. */
export function wrappingType(to: DType): 'u32' | 'u64' | 'f32' | 'f64' {
  const type = sumType(to);
  return type === 'i32' ? 'u32' : type === 'i64' ? 'u64' : type;
}

/** Kernels of a chunk in each block along x and rows along y: `scanChunks` gives their results, `scanTiles` scans from those. */
export function scanText({ operator, from, to, items, isDivided }: ScanForm): string {
  const none = `(Sum)${operator === '+' ? 0 : 1}`;
  const conversions = new Set([from, to].map((dtype) => CONVERSIONS[dtype] ?? ''));
  const element = (dtype: DType): string => (dtype in CONVERSIONS ? `struct { ${storageType(dtype)} bits; }` : storageType(dtype));
  return `${[...conversions].join('')}
typedef ${storageType(wrappingType(to))} Sum;
typedef ${element(from)} Element;
typedef ${element(to)} Result;
#define LOADED(x) (Sum)${from in CONVERSIONS ? `widened_${from}((x).bits)` : '(x)'}
#define STORED(x) ${to in CONVERSIONS ? `Result{narrowed_${to}((float)(x))}` : '(Result)(x)'}
#define TILE ${items * BLOCK}
#define EACH _Pragma("unroll") for (int n = 0; n < ${items}; n++)

/* What the threads up to this one give, in the order of their elements. */
__device__ __forceinline__ Sum upTo(Sum value, const int lane) {
  _Pragma("unroll")
  for (int step = 1; step < 32; step *= 2) {
    const Sum other = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = other ${operator} value;
  }
  return value;
}
${isDivided ? chunksText(operator, none, items) : ''}
extern "C" __global__ void __launch_bounds__(${BLOCK}) scanTiles(
    const Element* x, Result* y, ${isDivided ? 'const Sum* results, ' : ''}const int rows, const int length, const int chunk) {
  __shared__ Sum sums[2][${WARPS}];
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5, start = blockIdx.x * chunk, size = min(chunk, length - start);
  /* A warp has consecutive elements of each tile. */
  const int first = warp * ${32 * items} + lane;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    Sum carry = ${none};${
      isDivided
        ? `
    for (int other = t; other < blockIdx.x; other += ${BLOCK}) carry = carry ${operator} results[row * gridDim.x + other];
    carry = ofBlock(carry, sums[0]);`
        : ''
    }
    const long long base = (long long)row * length + start + first;
    for (int tile = 0, turn = 0; tile < size; tile += TILE, turn ^= 1) {
      const int left = size - tile - first;
      const bool isFull = size - tile >= TILE;
      Sum own[${items}];
      if (isFull) {
        EACH own[n] = LOADED(x[base + tile + n * 32]);
      } else {
        EACH own[n] = n * 32 < left ? LOADED(x[base + tile + n * 32]) : ${none};
      }
      EACH own[n] = upTo(own[n], lane);
      Sum before = ${none};
      EACH {
        const Sum all = __shfl_sync(0xffffffffu, own[n], 31);
        own[n] = before ${operator} own[n];
        before = before ${operator} all;
      }
      /* Two places in turn, so that one barrier a tile is enough. */
      if (lane == 0) sums[turn][warp] = before;
      __syncthreads();
      before = carry;
      _Pragma("unroll")
      for (int other = 0; other < ${WARPS}; other++) {
        const Sum all = sums[turn][other];
        if (other < warp) before = before ${operator} all;
        carry = carry ${operator} all;
      }
      if (isFull) {
        EACH y[base + tile + n * 32] = STORED(before ${operator} own[n]);
      } else {
        EACH if (n * 32 < left) y[base + tile + n * 32] = STORED(before ${operator} own[n]);
      }
    }
    __syncthreads();
  }
}
`;
}

/** The kernel that finds the results of chunks, and what both kernels use. */
function chunksText(operator: string, none: string, items: number): string {
  return `
/* What all threads of the block give. */
__device__ __forceinline__ Sum ofBlock(const Sum value, Sum* sums) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const Sum own = upTo(value, lane);
  if (lane == 31) sums[warp] = own;
  __syncthreads();
  Sum all = sums[0];
  _Pragma("unroll")
  for (int other = 1; other < ${WARPS}; other++) all = all ${operator} sums[other];
  __syncthreads();
  return all;
}

extern "C" __global__ void __launch_bounds__(${BLOCK}) scanChunks(const Element* x, Sum* results, const int rows, const int length, const int chunk) {
  __shared__ Sum sums[${WARPS}];
  const int t = threadIdx.x, start = blockIdx.x * chunk, size = min(chunk, length - start);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const Element* from = x + (long long)row * length + start + t;
    Sum value = ${none};
    int tile = 0;
    for (; tile <= size - TILE; tile += TILE) {
      Element own[${items}];
      EACH own[n] = from[tile + n * ${BLOCK}];
      EACH value = value ${operator} LOADED(own[n]);
    }
    for (; tile < size - t; tile += ${BLOCK}) value = value ${operator} LOADED(from[tile]);
    const Sum all = ofBlock(value, sums);
    if (t == 0) results[row * gridDim.x + blockIdx.x] = all;
  }
}
`;
}
