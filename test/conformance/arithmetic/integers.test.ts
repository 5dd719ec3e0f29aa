// Chapter 4: integers that overflow, and floats that no integer holds, in kernels of both languages, against plain JavaScript.
import { describe, expect } from 'vitest';
import { cudaKernel, cudaModule, f32, i32, i64, inout, input, kernel, output, u32, u8 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const COUNT = 5000;
const PARAMS = { noise: output(i32), hash: output(i32), index: output(i32) };

/** Optimisers that assume that nothing overflows end the loop over threads, or drop the stores, where `i * 1103515245` would. */
const generated = (bounds: 'checked' | 'unchecked') =>
  kernel(
    'generated',
    { ...PARAMS, wide: inout(i64) },
    ({ noise, hash, index, wide }, { i }) => {
      noise[i] = i * 1103515245 + 12345;
      hash[i] = (i * 73856093) ^ (i * 19349663) ^ -(i * 83492791);
      wide[i] = -(wide[i]! * 6364136223846793005n + 1442695040888963407n);
      let sum = i;
      for (let k = 0; k < 9; k++) sum = sum * 31 - k;
      index[i] = i + (sum & 1);
    },
    { bounds },
  );

const BODY = `int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  noise[i] = i * 1103515245 + 12345;
  hash[i] = (i * 73856093) ^ (i * 19349663) ^ -(i * 83492791);
  int sum = i;
  for (int k = 0; k < 9; k++) sum = sum * 31 - k;`;
const THREADS = cudaKernel(
  'given',
  { ...PARAMS, n: i32 },
  `extern "C" __global__ void given(int* noise, int* hash, int* index, int n) {
  ${BODY}
  index[i] = i + (sum & 1);
}`,
);
const WAITING = cudaKernel(
  'waiting',
  { ...PARAMS, n: i32 },
  `extern "C" __global__ void waiting(int* noise, int* hash, int* index, int n) {
  __shared__ int odd[128];
  ${BODY.replace('if (i >= n) return;', 'if (i >= n) i = n - 1;')}
  odd[127 - threadIdx.x] = sum & 1;
  __syncthreads();
  index[i] = i + odd[127 - threadIdx.x];
}`,
);

const times = Math.imul;
function sumOf(i: number): number {
  let sum = i;
  for (let k = 0; k < 9; k++) sum = (times(sum, 31) - k) | 0;
  return sum;
}
const EXPECTED = {
  noise: Int32Array.from({ length: COUNT }, (_unused, i) => times(i, 1103515245) + 12345),
  hash: Int32Array.from({ length: COUNT }, (_unused, i) => times(i, 73856093) ^ times(i, 19349663) ^ -times(i, 83492791)),
  index: Int32Array.from({ length: COUNT }, (_unused, i) => i + (sumOf(i) & 1)),
};

/** C++'s types, whether they have a sign, and their bits. `char` has one on x86 and with nvcc. */
const TYPES = [
  ['signed char', true, 8],
  ['char', true, 8],
  ['uint8_t', false, 8],
  ['short', true, 16],
  ['unsigned short', false, 16],
  ['int', true, 32],
  ['unsigned', false, 32],
  ['long', true, 64],
  ['unsigned long long', false, 64],
] as const;

/** Statements that convert the float `v` to `T` and store it in `r`. */
const CONVERSIONS: readonly ((type: string, n: number) => string)[] = [
  (type) => `r = (${type})v;`,
  (type) => `r = +(${type})(double)v;`,
  (type) => (/ /.test(type) ? `r = static_cast<${type}>(v);` : `r = ${type}(v * 1.0f);`),
  (type) => `r = CAST(${type}, v);`,
  (type) => `${type} t = v; r = t;`,
  (type) => `${type} t; t = 1 > 0 ? v : t; r = t;`,
  (type) => `${type} t = 0; t += v * 1.0; r = t;`,
  (_type, n) => `r = taken${n}(v, 1);`,
  (_type, n) => `r = given${n}(v);`,
  (_type, n) => `r = Held${n}(v).member;`,
  (type) => `r = converted<${type}>(v); converted<float>(v);`,
];
const CONVERTING = `#define CAST(T, x) ((T)(x))
template <class T> __device__ T converted(float v) { T t = v; return (T)(t + 0); }
${TYPES.map(
  ([type], n) => `__device__ long long taken${n}(${type} v, int) { return v; }
__device__ ${type} given${n}(float v) { return v; }
struct Held${n} { ${type} member; __device__ Held${n}(float v) : member(v) {} };
__device__ void row${n}(float v, long long* y) {
  long long r;
  ${CONVERSIONS.map((text, k) => `{ ${text(type, n)} y[${k}] = r; }`).join('\n  ')}
}`,
).join('\n')}
__global__ void converting(const float* x, long long* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  ${TYPES.map((_type, n) => `row${n}(x[i], y + (i * ${TYPES.length} + ${n}) * ${CONVERSIONS.length});`).join('\n  ')}
}
__global__ void looping(const float* x, unsigned char* narrow, int* whole, unsigned* word, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  narrow[i] = (unsigned char)x[i];
  whole[i] = x[i];
  word[i] = static_cast<unsigned>(x[i]);
}
__global__ void waiting(const float* x, long long* y) {
  __shared__ int s[64];
  const int i = threadIdx.x;
  s[63 - i] = (int)x[63 - i];
  __syncthreads();
  unsigned word = x[i];
  y[i] = s[i] + (long long)word;
}`;

const NUMBERS = Float32Array.from([
  0,
  -0,
  0.5,
  -0.5,
  0.999,
  -1,
  -1.9,
  127.5,
  128,
  -129,
  255.9,
  256,
  300.7,
  -200.9,
  32768,
  65536,
  -32769,
  1e6,
  -1e6,
  2147483520,
  2147483648,
  -2147483648,
  -2147483904,
  4294967040,
  4294967296,
  1e10,
  -1e10,
  9223371487098961920,
  9223372036854775808,
  -9223372036854775808,
  -1e19,
  18446742974197923840,
  18446744073709551616,
  1e20,
  -1e20,
  3e38,
  -3e38,
  1e-40,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NaN,
]);

/** As PTX converts to 32 or 64 bits, of which narrower types keep the low ones. */
function saturated(value: number, isSigned: boolean, bits: number, isDouble = false): bigint {
  const wide = bits === 64 ? 64 : 32;
  const fit = isSigned ? BigInt.asIntN : BigInt.asUintN;
  if (Number.isNaN(value)) return BigInt.asIntN(64, fit(bits, isDouble || wide === 64 ? 2n ** BigInt(wide - 1) : 0n));
  const [low, high] = isSigned ? [-(2n ** BigInt(wide - 1)), 2n ** BigInt(wide - 1) - 1n] : [0n, 2n ** BigInt(wide) - 1n];
  if (value >= Number(high)) return BigInt.asIntN(64, fit(bits, high));
  return BigInt.asIntN(64, fit(bits, value <= Number(low) ? low : BigInt(Math.trunc(value))));
}

defineChapter((target) => {
  describe('4 kernels: integers that overflow', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S412', 'i32 and i64 wrap, and every thread writes its results, checked and unchecked', async () => {
      const { stream } = chapter.device;
      for (const bounds of ['checked', 'unchecked'] as const) {
        using noise = stream.zeros(COUNT, 'i32');
        using hash = stream.zeros(COUNT, 'i32');
        using index = stream.zeros(COUNT, 'i32');
        const before = BigInt64Array.from({ length: COUNT }, (_unused, i) => BigInt(i) * 0x1234_5678_9abc_def1n);
        using wide = stream.from(before);
        stream.launch(generated(bounds), COUNT, { noise, hash, index, wide });
        expect(await noise.read()).toEqual(EXPECTED.noise);
        expect(await hash.read()).toEqual(EXPECTED.hash);
        expect(await index.read()).toEqual(EXPECTED.index);
        const after = before.map((value) => -(value * 6364136223846793005n + 1442695040888963407n));
        expect(await wide.read()).toEqual(after);
      }
    });

    rule('S458', 'int of CUDA C++ source wraps, and every thread writes its results, with and without barriers', async () => {
      const { stream } = chapter.device;
      for (const made of [THREADS, WAITING]) {
        using noise = stream.zeros(COUNT, 'i32');
        using hash = stream.zeros(COUNT, 'i32');
        using index = stream.zeros(COUNT, 'i32');
        stream.launch(made, { threads: COUNT, block: 128 }, { noise, hash, index, n: COUNT });
        expect(await noise.read()).toEqual(EXPECTED.noise);
        expect(await hash.read()).toEqual(EXPECTED.hash);
        expect(await index.read()).toEqual(EXPECTED.index);
      }
    });

    rule('S459', 'conversions of floats to integers saturate, with casts of every form and without', async () => {
      const { device } = chapter;
      const { stream } = device;
      const module = cudaModule(CONVERTING);
      const converting = module.kernel('converting', { x: input(f32), y: output(i64) });
      const looping = module.kernel('looping', { x: input(f32), narrow: output(u8), whole: output(i32), word: output(u32), n: i32 });
      const waiting = module.kernel('waiting', { x: input(f32), y: output(i64) });
      using x = stream.from(NUMBERS);
      using y = stream.zeros([NUMBERS.length, TYPES.length, CONVERSIONS.length], 'i64');
      stream.launch(converting, { grid: NUMBERS.length, block: 1 }, { x, y });
      const seen = await y.read();
      const wrong = [...seen].flatMap((own, at) => {
        const form = at % CONVERSIONS.length;
        const [type, isSigned, bits] = TYPES[Math.trunc(at / CONVERSIONS.length) % TYPES.length]!;
        const value = NUMBERS[Math.trunc(at / CONVERSIONS.length / TYPES.length)]!;
        const text = CONVERSIONS[form]!(type, 0);
        const wanted = saturated(value, isSigned, bits, /double|1\.0\b(?!f)/.test(text));
        return own === wanted ? [] : [`${text} of ${value} is ${own}, not ${wanted}`];
      });
      expect(wrong).toEqual([]);

      const many = Float32Array.from({ length: 1024 }, (_unused, i) => NUMBERS[i % NUMBERS.length]!);
      const low = (value: number): number => Number(saturated(value, false, 8));
      using from = stream.from(many);
      using narrow = stream.zeros(1024, 'u8');
      using whole = stream.zeros(1024, 'i32');
      using word = stream.zeros(1024, 'u32');
      stream.launch(looping, { grid: 8, block: 128 }, { x: from, narrow, whole, word, n: 1024 });
      expect(await narrow.read()).toEqual(Uint8Array.from(many, low));
      expect(await whole.read()).toEqual(Int32Array.from(many, (value) => Number(saturated(value, true, 32))));
      expect(await word.read()).toEqual(Uint32Array.from(many, (value) => Number(saturated(value, false, 32))));

      using sums = stream.zeros(64, 'i64');
      stream.launch(waiting, { grid: 1, block: 64 }, { x: from, y: sums });
      const sum = (value: number): bigint => saturated(value, true, 32) + saturated(value, false, 32);
      expect(await sums.read()).toEqual(BigInt64Array.from({ length: 64 }, (_unused, i) => sum(many[i]!)));
    });
  });
});
