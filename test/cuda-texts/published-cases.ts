// Idioms of published programs whose host code and kernels share declarations.
import { f32, i32, i64, inout, input, output, struct, u32, u64 } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const cells = floats(5 * 7, (i) => i * 1.5 - 4);
const limits = ints(100, (i) => ((i * 31) % 17) - 8);

/** Amounts about the widths of 32 and 64 bits. */
const amounts = Int32Array.of(0, 1, 31, 32, 33, 63, 64, 65, 1000, -1, -32);
const shifted = Int32Array.of(-77, 1, -1, 5, -2147483648, 2147483647, -3, 9, -4, 8, -8);

/** A GPU's shifts: the amount is unsigned, and no bit stays at the width or more. */
const left = (x: bigint, by: number): bigint => (by < 0 ? 0n : x << BigInt(by));
const right = (x: bigint, by: number): bigint => x >> BigInt(by < 0 ? 64 : by);
const narrow = [...shifted].flatMap((x, i) => {
  const [by, unsigned, signed] = [amounts[i]!, BigInt(x >>> 0), BigInt(x)];
  return [
    left(unsigned, by),
    right(unsigned, by),
    right(signed, by),
    right(unsigned, by + 1),
    (left(1n, by) % 2n ** 32n) - 1n,
    left(2n ** 32n - 1n, 32 - by),
    left(BigInt.asIntN(16, signed), by) - 1n,
    left(BigInt(i), by) | (right(signed, by) < 0n ? 1n : 0n),
  ];
});
const wide = [...shifted].flatMap((x, i) => {
  const by = amounts[i]!;
  return [left(BigInt(x >>> 0), by), right(BigInt(x), by), left(1n, by) - 1n].map((v) => BigInt.asUintN(64, v));
});

const bits = (count: number): BigUint64Array => BigUint64Array.of(2n ** BigInt(count) - 1n);

const vectors = ints(128 * 8, (i) => (i * 37) % 101);
const quads = floats(256, (i) => i / 4 - 20);

const quadSum = (at: number): number => quads[at]! + quads[at + 1]! + quads[at + 2]! + quads[at + 3]!;

/** What thread i of `as_coroutines` writes. */
function outOf(i: number): readonly number[] {
  const at = i % 4;
  const lanes = ints(32, (lane) => vectors[8 * ((i & ~31) + lane) + (lane % 4)]!);
  const picked = lanes.reduce((a, b) => a + b) + vectors[8 * i + 4 + ((at + 1) % 4)]! + vectors[8 * i + 3]!;
  return [i % 2 === 1 ? -1 : i, i + 1, i + 2, i + 3 + (i < 64 ? picked : 0)];
}

export const PUBLISHED_CASES: readonly TextCase[] = [
  {
    file: 'unknown-host-types',
    kernel: 'scale',
    params: { x: input(f32), y: output(f32), s: struct({ by: f32 }) },
    launch: { grid: 1, block: 32 },
    given: { x: floats(32, (i) => i - 9), y: new Float32Array(32), s: { by: 2 } },
    results: { y: floats(32, (i) => 2 * (i - 9) + (i < 9 ? 1 : 0)) },
  },
  {
    file: 'older-dialect',
    kernel: 'older',
    params: { x: input(f32), y: output(f32) },
    launch: { grid: 1, block: 32, sharedBytes: 1024 },
    options: ['-std=c++14'],
    given: { x: floats(32, (i) => 20 - i), y: new Float32Array(32) },
    results: { y: floats(32, (i) => Math.max(20 - (31 - i), 31 - i) + (i % 16) * 100) },
  },
  {
    file: 'dynamic-rows',
    kernel: 'transposed',
    params: { x: input(f32), y: output(f32) },
    launch: { grid: 1, block: [16, 16], sharedBytes: 1024 },
    given: { x: quads, y: new Float32Array(256) },
    results: { y: floats(256, (i) => quads[(i % 16) * 16 + Math.floor(i / 16)]! + 100 * quadSum(i - (i % 4)) + 3) },
  },
  {
    file: 'files-in-classes',
    kernel: 'mirror',
    params: { in: input(f32), out: output(f32), width: i32, height: i32 },
    launch: { grid: 5, block: 32 },
    given: { in: cells, out: new Float32Array(35), width: 7, height: 5 },
    results: { out: floats(35, (i) => cells[7 * Math.floor(i / 7) + 6 - (i % 7)]!) },
  },
  {
    file: 'runtime-types',
    kernel: 'count_items',
    params: { limits: input(i32), codes: output(i32), n: i32 },
    launch: { grid: 2, block: 64 },
    given: { limits, codes: new Int32Array(100), n: 100 },
    results: { codes: limits.map((limit) => (limit < 0 ? 1 : 0)) },
  },
  {
    file: 'built-in-atomics',
    kernel: 'built_in',
    params: { x: input(i32), counts: inout(i32), sum: inout(f32), bits: inout(u64) },
    launch: { grid: 5, block: 10 },
    given: { x: limits.slice(0, 50), counts: new Int32Array(7).fill(3), sum: new Float32Array(1), bits: new BigUint64Array(1) },
    results: {
      counts: Int32Array.of(
        limits.slice(0, 50).reduce((a, b) => a + b, 3),
        Math.max(...limits.slice(0, 50)),
        Math.min(...limits.slice(0, 50)),
        103,
        77,
        3,
        8,
      ),
      sum: Float32Array.of(25),
      bits: bits(50),
    },
  },
  {
    file: 'containers-in-classes',
    kernel: 'turn',
    params: { x: input(i32), y: output(i32), n: i32 },
    launch: { grid: 4, block: 32 },
    given: { x: limits, y: new Int32Array(100), n: 100 },
    results: { y: limits.map((_v, i) => limits[(i + 1) % 100]!) },
  },
  {
    file: 'macros-of-projects',
    kernel: 'sums',
    params: { pairs: input(i32), out: output(i32), n: i32 },
    launch: { grid: 2, block: 32 },
    given: { pairs: limits, out: new Int32Array(50), n: 50 },
    results: { out: ints(50, (i) => limits[2 * i]! + 10 * limits[2 * i + 1]!) },
  },
  {
    file: 'arrays-as-vectors',
    kernel: 'as_coroutines',
    params: { in: input(i32), out: output(i32), limit: i32 },
    launch: { grid: 2, block: 64 },
    given: { in: vectors, out: new Int32Array(512), limit: 1 },
    results: { out: ints(512, (at) => outOf(at >> 2)[at & 3]!) },
  },
  {
    file: 'arrays-as-vectors',
    kernel: 'as_loops',
    params: { in: input(f32), out: output(f32) },
    launch: { grid: 1, block: 64 },
    given: { in: quads, out: new Float32Array(256) },
    results: {
      out: floats(256, (at) => {
        const [own, other] = [quads.subarray(at & ~3), quads.subarray(252 - (at & ~3))];
        return [other[0]!, other[3]!, own[0]! + own[1]!, own[2]! + own[3]!][at & 3]!;
      }),
    },
  },
  {
    file: 'dependent-launches',
    kernel: 'swap_halves',
    params: { in: input(i64), out: output(i64), n: i32 },
    launch: { grid: 2, block: 32 },
    given: { in: BigInt64Array.from(limits, (v, i) => (BigInt(i) << 32n) + BigInt(v + 8)), out: new BigInt64Array(100).fill(-1n), n: 50 },
    results: { out: BigInt64Array.from(limits, (v, i) => (i < 50 ? (BigInt(v + 8) << 32n) + BigInt(i) : -1n)) },
  },
  {
    file: 'overloaded-kernels',
    kernel: 'step',
    params: { x: inout(i32), by: input(i32), factor: i32, n: i32 },
    launch: { grid: 2, block: 64 },
    given: { x: limits, by: ints(100, (i) => i), factor: 3, n: 90 },
    results: { x: ints(100, (i) => (i < 90 ? limits[i]! * 3 + i : limits[i]!)) },
  },
  {
    file: 'overloaded-kernels',
    kernel: 'step',
    params: { x: inout(i32), factor: i32, n: i32 },
    launch: { grid: 2, block: 64 },
    given: { x: limits, factor: -2, n: 100 },
    results: { x: limits.map((v) => v * -2) },
  },
  {
    file: 'kept-writes',
    kernel: 'count_multiples',
    params: { values: input(i32), n: i32, counts: output(u32) },
    launch: { grid: 1, block: 64 },
    given: { values: limits, n: 100, counts: new Uint32Array(64) },
    results: { counts: Uint32Array.from({ length: 64 }, (_unused, t) => limits.filter((limit) => limit % (t + 1) === 0).length) },
  },
  {
    file: 'nvcc-dialect',
    kernel: 'move',
    params: { x: input(f32), y: output(f32), n: i32 },
    launch: { grid: 2, block: 32 },
    given: { x: cells, y: new Float32Array(35), n: 35 },
    results: { y: cells.map((x) => (x > 0 ? x + 1.5 : -1.5 * x + 1.5)) },
  },
  {
    file: 'wide-shifts',
    kernel: 'shift',
    params: { x: input(i32), amounts: input(i32), narrow: output(u32), wide: output(u64), n: i32 },
    launch: { grid: 1, block: 32 },
    given: { x: shifted, amounts, narrow: new Uint32Array(narrow.length), wide: new BigUint64Array(wide.length), n: amounts.length },
    results: { narrow: Uint32Array.from(narrow, (v) => Number(BigInt.asUintN(32, v))), wide: BigUint64Array.from(wide) },
  },
];
