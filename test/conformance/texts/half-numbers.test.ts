// Chapter 4: half and bfloat16 of CUDA C++ source, against plain JavaScript, bit for bit. The sources are in test/cuda-texts.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  type ArrayParam,
  bf16,
  bitsFromFloats,
  cudaKernel,
  type CudaModule,
  cudaModule,
  type Device,
  type DeviceArray,
  f16,
  f32,
  f64,
  floatsFromBits,
  i32,
  i64,
  inout,
  input,
  kernel,
  output,
  type Params,
  type Scalar,
  u16,
  u32,
} from 'millrace';
import { HALF_CASES } from '../../cuda-texts/half-cases.js';
import { textOf } from '../../cuda-texts/text-case.js';
import { defineChapter } from '../../support/chapter.js';
import {
  BFLOAT16,
  type Direction,
  extreme,
  fused,
  HALF,
  NAN_BITS,
  narrowed,
  narrowedInteger,
  saturated,
  saturatedInteger,
  type SmallFormat,
  UNARY,
  widened,
} from '../../support/half-numbers.js';
import { IS_LONG } from '../../support/long.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { pickedTexts } from '../../support/target.js';
import { thrownBy } from '../../support/wait.js';
import { checkText } from '../../cuda-texts/text-check.js';

/** Numbers around the ends of both formats: zeros, the smallest, the largest, infinities and NaN. */
const ENDS = [0, 1, 0x3ff, 0x400, 0x7f, 0x80, 0x7bff, 0x7c00, 0x7c01, 0x7f7f, 0x7f80, 0x7f81, 0x7fff, 0x3c00, 0x3f80, 0x5555];
/** All bits; in the short form every seventh, which have all endings, and the ends of both signs. An even number, for pairs. */
const ALL = Uint16Array.from(
  IS_LONG
    ? { length: 65536 }
    : [...ENDS, ...ENDS.map((bits) => bits + 0x8000), ...Array.from({ length: 9362 }, (_unused, at) => 7 * at + 1)],
  (bits, at) => bits ?? at,
);
const COUNT = ALL.length;
/** The dtype of a format's arrays. */
const dtypeOf = ({ word }: SmallFormat): Scalar => (word === 'half' ? f16 : bf16);
const FORMATS: readonly SmallFormat[] = [HALF, BFLOAT16];

/** Numbers below 2^32 that look random, the same in each run. */
function randomWords(length: number, seed: number): Uint32Array {
  let state = seed;
  return Uint32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) >>> 0;
  });
}

/** Names the first values that differ. */
function expectBits(found: Uint16Array, expected: (at: number) => number, what: (at: number) => string): void {
  const wrong: string[] = [];
  for (let at = 0; at < found.length && wrong.length < 5; at++) {
    const right = expected(at);
    if (found[at] !== right) wrong.push(`${what(at)} is 0x${found[at]!.toString(16)}, not 0x${right.toString(16)}`);
  }
  expect(wrong).toEqual([]);
}

type Arrays = Readonly<Record<string, NodeJS.TypedArray>>;

/** By file: all kernels of one are compiled at once. */
const modules = new Map<string, CudaModule>();

/** Launches a kernel of a text once, and returns what its outputs contain. */
async function launched(device: Device, file: string, entry: string, params: Params, given: Arrays, threads: number): Promise<Arrays> {
  const module = modules.get(file) ?? cudaModule(textOf(file));
  modules.set(file, module);
  const made = module.kernel(entry, { ...params, n: i32 });
  const arrays = Object.entries(given).map(([name, data]) => {
    const param = params[name] as ArrayParam;
    const dtype = param.dtype as 'f32';
    return [name, param.access === 'out' ? device.zeros(data.length, dtype) : device.from(data as Float32Array, { dtype })] as const;
  });
  device.stream.launch(made, { grid: Math.ceil(threads / 256), block: 256 }, { ...Object.fromEntries(arrays), n: threads } as never);
  const read = await Promise.all(arrays.map(async ([name, array]) => [name, await array.read()] as const));
  for (const [, array] of arrays) array[Symbol.dispose]();
  return Object.fromEntries(read) as Arrays;
}

async function checkFunctions(device: Device, format: SmallFormat): Promise<void> {
  const expected = UNARY.map(([, of]) => Uint16Array.from(ALL, (bits) => narrowed(format, of(widened(format, bits)))));
  const params = { x: input(dtypeOf(format)), y: output(dtypeOf(format)) };
  for (const [prefix, per] of [
    ['', 1],
    ['2', 2],
  ] as const) {
    const given = { x: ALL, y: new Uint16Array(UNARY.length * ALL.length) };
    const name = `${format.word}${prefix}_functions`;
    const { y } = await launched(device, 'half-functions', name, params, given, ALL.length / per);
    const nameOf = (at: number): string =>
      `${format.word}${prefix} ${UNARY[Math.trunc(at / COUNT)]![0]}(0x${ALL[at % COUNT]!.toString(16)})`;
    expectBits(y as Uint16Array, (at) => expected[Math.trunc(at / COUNT)]![at % COUNT]!, nameOf);
  }
}

const MODES: readonly Direction[] = ['rn', 'rz', 'rd', 'ru'];
const ROUND: Readonly<Record<Direction, (x: number) => number>> = {
  rn: UNARY.find(([name]) => name === 'rint')![1],
  rz: Math.trunc,
  rd: Math.floor,
  ru: Math.ceil,
};
const INTEGERS = [16, 32, 64].flatMap((bits) => [true, false].flatMap((isSigned) => MODES.map((mode) => ({ bits, isSigned, mode }))));
const TO_INTEGERS = [...INTEGERS, { bits: 8, isSigned: true, mode: 'rz' }, { bits: 8, isSigned: false, mode: 'rz' }] as const;

/** The words of a 64-bit integer, low one first. BigInts are slow, so they are only used for what a number cannot hold. */
function wordsOf(value: number, bits: number, isSigned: boolean): readonly [low: number, high: number] {
  if (Number.isNaN(value) || (bits === 64 && !Number.isSafeInteger(value))) {
    const whole = saturatedInteger(value, bits, isSigned);
    return [Number(whole & 0xffffffffn), Number((whole >> 32n) & 0xffffffffn)];
  }
  const low = isSigned ? -(2 ** (bits - 1)) : 0;
  const whole = Math.min(Math.max(value, low), low + 2 ** bits - 1);
  return [whole >>> 0, Math.floor(whole / 2 ** 32) >>> 0];
}

async function checkWidening(device: Device, format: SmallFormat): Promise<void> {
  const params = { x: input(dtypeOf(format)), wide: output(f32), whole: output(i64) };
  const given = { x: ALL, wide: new Float32Array(COUNT), whole: new BigInt64Array(COUNT * TO_INTEGERS.length) };
  const { wide, whole } = await launched(device, 'half-conversions', `${format.word}_widened`, params, given, COUNT);
  const right = Float32Array.from(ALL, (bits) => widened(format, bits));
  expect(wide).toEqual(right);
  const words = new Uint32Array(whole!.buffer);
  const wrong: string[] = [];
  for (const [k, { bits, isSigned, mode }] of TO_INTEGERS.entries()) {
    for (const [n, x] of ALL.entries()) {
      const at = 2 * (COUNT * k + n);
      const [low, high] = wordsOf(ROUND[mode](right[n]!), bits, isSigned);
      if ((words[at] !== low || words[at + 1] !== high) && wrong.length < 5)
        wrong.push(`${format.word} 0x${x.toString(16)} as ${isSigned ? 'i' : 'u'}${bits}_${mode}: ${words[at]} ${words[at + 1]}`);
    }
  }
  expect(wrong).toEqual([]);
}

/** Floats of all sizes, and the middles between two neighbours with their own neighbours. */
function hardDoubles(format: SmallFormat): Float64Array {
  const middles = Array.from(randomWords(500, 3), (word) => {
    const bits = word & 0x7fff;
    return (widened(format, bits) + widened(format, bits + 1)) / 2;
  });
  const near = middles.flatMap((value) => [value, value * (1 + 2 ** -52), value * (1 - 2 ** -53), -value]);
  const any = new Float64Array(randomWords(4000, 4).buffer);
  const usual = Array.from(randomWords(2000, 5), (word, at) => (word / 2 ** 31 - 1) * 2 ** ((at % 60) - 35));
  return Float64Array.from([...near, ...any, ...usual].filter((value) => !Number.isNaN(value)).concat([0, -0, Infinity, -Infinity, 1e300]));
}

async function checkNarrowing(device: Device, format: SmallFormat): Promise<void> {
  const d = hardDoubles(format);
  const f = Float32Array.from(d);
  const n = d.length;
  const words = randomWords(2 * n, 6);
  // Of all lengths.
  const w = BigInt64Array.from({ length: n }, (_unused, i) => {
    const value = BigInt.asIntN(64, (BigInt(words[2 * i]!) << 32n) | BigInt(words[2 * i + 1]!));
    return value >> BigInt(words[2 * i + 1]! % 64);
  });
  const params = { f: input(f32), d: input(f64), w: input(i64), y: output(dtypeOf(format)) };
  const { y } = await launched(device, 'half-conversions', `${format.word}_narrowed`, params, { f, d, w, y: new Uint16Array(17 * n) }, n);
  const whole = (value: bigint, direction: Direction): number => narrowedInteger(format, value, direction);
  const rows: readonly ((i: number) => number)[] = [
    ...MODES.map((mode) => (i: number) => narrowed(format, f[i]!, mode)),
    (i) => narrowed(format, d[i]!),
    ...MODES.map((mode) => (i: number) => whole(w[i]!, mode)),
    (i) => whole(BigInt.asUintN(64, w[i]!), 'rn'),
    (i) => whole(BigInt.asIntN(32, w[i]!), 'rn'),
    (i) => whole(BigInt.asUintN(32, w[i]!), 'ru'),
    (i) => whole(BigInt.asIntN(16, w[i]!), 'rd'),
    (i) => whole(BigInt.asUintN(16, w[i]!), 'rz'),
    (i) => narrowed(format, f[i]!),
    (i) => whole(w[i]!, 'rn'),
    (i) => narrowed(format, d[i]!),
  ];
  const nameOf = (at: number): string => `${format.word} row ${Math.trunc(at / n)} of ${d[at % n]} ${w[at % n]}`;
  expectBits(y as Uint16Array, (at) => rows[Math.trunc(at / n)]!(at % n), nameOf);
}

type Operation = (a: number, b: number, c: number, d: number) => number;

/** The expressions of half-arithmetic.cu, in order, on bits. */
function operationsOf(format: SmallFormat): readonly Operation[] {
  const wide = (bits: number): number => widened(format, bits);
  const near = (value: number): number => narrowed(format, value);
  const neg = (bits: number): number => near(-wide(bits));
  const [add, mul]: Operation[] = [(a, b) => near(wide(a) + wide(b)), (a, b) => near(wide(a) * wide(b))];
  const sub: Operation = (a, b) => near(wide(a) - wide(b));
  const fma: Operation = (a, b, c) => fused(format, a, b, c);
  const sat = (bits: number): number => near(saturated(wide(bits)));
  const least =
    (isMax: boolean): Operation =>
    (a, b) =>
      near(extreme(wide(a), wide(b), isMax));
  const orNan =
    (of: Operation): Operation =>
    (a, b, c, d) =>
      Number.isNaN(wide(a)) || Number.isNaN(wide(b)) ? NAN_BITS : of(a, b, c, d);
  const [div, max, min]: Operation[] = [(a, b) => near(wide(a) / wide(b)), least(true), least(false)];
  const counted: Operation = (a, b, c) => add!(mul!(sub(c, a, 0, 0), b, 0, 0), near(1), 0, 0);
  return [
    add,
    sub,
    mul,
    div!,
    (a, b, c) => add!(mul!(a, b, 0, 0), c, 0, 0),
    (a, b, c) => sub(mul!(a, b, 0, 0), c, 0, 0),
    (...of) => sat(add!(...of)),
    (...of) => sat(sub(...of)),
    (...of) => sat(mul!(...of)),
    fma,
    (...of) => sat(fma(...of)),
    (...of) => (Number.isNaN(wide(fma(...of))) ? NAN_BITS : near(Math.max(wide(fma(...of)), 0))),
    max!,
    min!,
    orNan(max!),
    orNan(min!),
    add!,
    sub,
    mul!,
    div!,
    neg,
    fma,
    fma,
    (a, b, c) => fma(a, b, neg(c), 0),
    (a, b, c) => fma(neg(a), b, c, 0),
    (a, b, c, d) => fma(a, b, mul!(c, d, 0, 0), 0),
    fma,
    (a, b, c) => fma(neg(a), b, c, 0),
    fma,
    counted,
    (...of) => add!(sub(counted(...of), near(1), 0, 0), near(1), 0, 0),
  ] as readonly Operation[];
}

/** The verdicts of half-arithmetic.cu. */
function verdictsOf(format: SmallFormat, x: number, y: number): number {
  const [a, b] = [widened(format, x), widened(format, y)];
  const unordered = Number.isNaN(a) || Number.isNaN(b);
  const ordered = [!unordered && a === b, !unordered && a !== b, a < b, a <= b, a > b, a >= b];
  const all = [
    ...ordered,
    ...ordered.map((is) => is || unordered),
    a === b,
    a !== b,
    a < b,
    a <= b,
    a > b,
    a >= b,
    Number.isNaN(a),
    a !== 0,
  ];
  const infinite = a === Infinity ? 1 : a === -Infinity ? -1 : 0;
  return (all.reduce((bits, is, at) => bits | (is ? 1 << at : 0), 0) | ((infinite + 1) << 20)) >>> 0;
}

async function checkArithmetic(device: Device, format: SmallFormat): Promise<void> {
  const n = IS_LONG ? 20_000 : 4000;
  const special = [0, 0x8000, 1, 0x8001, narrowed(format, Infinity), narrowed(format, -Infinity), NAN_BITS, 0xffff, narrowed(format, 1)];
  // Random bits have distant exponents; every second run of four has near ones.
  const x = Uint16Array.from(randomWords(n + 3, 7), (word, at) =>
    word % 11 === 0 ? special[word % 9]! : (at >> 2) % 2 ? word & 0xffff : narrowed(format, (word / 2 ** 31 - 1) * 8),
  );
  const operations = operationsOf(format);
  const params = { x: input(dtypeOf(format)), y: output(dtypeOf(format)), said: output(u32) };
  const given = { x, y: new Uint16Array(operations.length * n), said: new Uint32Array(n) };
  const { y, said } = await launched(device, 'half-arithmetic', `${format.word}_arithmetic`, params, given, n);
  const shown = (at: number): string => [0, 1, 2, 3].map((k) => `0x${x[(at % n) + k]!.toString(16)}`).join(' ');
  const expected = (at: number): number =>
    operations[Math.trunc(at / n)]!(...([0, 1, 2, 3].map((k) => x[(at % n) + k]!) as [number, number, number, number]));
  expectBits(y as Uint16Array, expected, (at) => `${format.word} operation ${Math.trunc(at / n)} of ${shown(at)}`);
  expect(said).toEqual(Uint32Array.from({ length: n }, (_unused, at) => verdictsOf(format, x[at]!, x[at + 1]!)));
}

/** Copies between f32 and bf16. */
const converted = kernel(
  'converted',
  { b: input(bf16), x: input(f32), wide: output(f32), rounded: output(bf16), by: bf16 },
  (p, { i, local, bf16: brain }) => {
    const kept = local(brain, 1);
    kept[0] = p.b[i]! * p.by;
    p.wide[i] = kept[0];
    p.rounded[i] = p.x[i]!;
  },
);

const SCALARS = `#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void scaled(half a, const __nv_bfloat16 b, nv_bfloat16 *y) {
  y[threadIdx.x] = __float2bfloat16(__half2float(a) + __bfloat162float(b) + (float)y[threadIdx.x]);
}`;

async function floatsOf(array: DeviceArray<'bf16'>): Promise<number[]> {
  return [...floatsFromBits(await array.read(), 'bf16')];
}

defineChapter((target) => {
  describe('4 kernels: half and bfloat16 of CUDA C++', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const format of FORMATS) {
      rule('S481', `${format.word}: functions of ${COUNT} arguments`, () => checkFunctions(chapter.device, format));
      rule('S481', `${format.word}: conversions to float and to integers`, () => checkWidening(chapter.device, format));
      rule('S481', `${format.word}: conversions in all rounding modes`, () => checkNarrowing(chapter.device, format));
      rule('S481', `${format.word}: arithmetic and comparisons`, () => checkArithmetic(chapter.device, format));
    }
    rule('S482', 'bf16 arrays take numbers, and items are numbers', async () => {
      const { device } = chapter;
      using listed = device.from([1, -2.5, 3.14159, 1e-40], { dtype: 'bf16' });
      expect([...(await listed.read())]).toEqual([1, -2.5, 3.14159, 1e-40].map((value) => narrowed(BFLOAT16, value)));
      expect(await listed.item(2)).toBe(3.140625);
      expect(await floatsOf(listed)).toEqual([1, -2.5, 3.140625, widened(BFLOAT16, narrowed(BFLOAT16, 1e-40))]);
      const bits = bitsFromFloats(Float32Array.of(0.1, -7), bf16);
      using given = device.from(bits, { dtype: 'bf16' });
      expect(await floatsOf(given)).toEqual([widened(BFLOAT16, 0x3dcd), -7]);
      expect(thrownBy(() => floatsFromBits(bits, 'u16' as 'f16')).message).toContain('(u16) is none of f16, bf16');
      expect(thrownBy(() => floatsFromBits(Float32Array.of(1) as never, 'f16')).message).toContain('not a Uint16Array');
      expect(thrownBy(() => bitsFromFloats(['1'] as never, 'f16')).message).toContain('is not a number');
      using full = device.full(3, 1 / 3, bf16);
      expect(await full.read()).toEqual(new Uint16Array(3).fill(0x3eab));
    });

    rule('S482', 'kernels of TypeScript load bf16 exactly, and round to the nearest even when they store it', async () => {
      const { device } = chapter;
      const numbers = Float32Array.from([1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.39e38, 3.4e38, 2 ** -134, 1.5 * 2 ** -133, -0, Number.NaN]);
      using b = device.from(Uint16Array.of(0, 0x3f80, 0xc000, 0x7f7f, 1, 0x80, 0x7f80, 0xbf81), { dtype: 'bf16' });
      using x = device.from(numbers);
      using wide = device.zeros(8);
      using rounded = device.zeros(8, 'bf16');
      device.stream.launch(converted, 8, { b, x, wide, rounded, by: 2 });
      const doubled = (bits: number): number => widened(BFLOAT16, narrowed(BFLOAT16, 2 * widened(BFLOAT16, bits)));
      expect([...(await wide.read())]).toEqual([...(await b.read())].map(doubled));
      expect([...(await rounded.read())]).toEqual([...numbers].map((value) => narrowed(BFLOAT16, value)));
    });

    rule('S482', 'half and __nv_bfloat16 parameters of CUDA C++ are f16 and bf16, by value too', async () => {
      const { device } = chapter;
      const scaled = cudaKernel('scaled', { a: f16, b: bf16, y: inout(bf16) }, SCALARS);
      using y = device.from([1, 2, 3], { dtype: 'bf16' });
      device.stream.launch(scaled, { grid: 1, block: 3 }, { a: 0.5, b: 100, y });
      expect([...(await y.read())]).toEqual([101.5, 102.5, 103.5].map((value) => narrowed(BFLOAT16, value)));
      cudaKernel('scaled', { a: f16, b: bf16, y: inout(u16) }, SCALARS);
      for (const params of [
        { a: f16, b: bf16, y: inout(f16) },
        { a: bf16, b: bf16, y: inout(bf16) },
        { a: f16, b: f32, y: inout(bf16) },
      ])
        expect(() => cudaKernel('scaled', params, SCALARS)).toThrow(ArgumentError);
    });

    for (const one of pickedTexts(target, HALF_CASES)) rule('S481', `idioms: ${one.file}`, () => checkText(chapter.device, one));
  });
});
