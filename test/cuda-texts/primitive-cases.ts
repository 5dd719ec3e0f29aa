// Idioms of parallel algorithms: reductions, scans, histograms, sorts, votes.
import { f32, i16, i32, inout, input, output, u32, u64, u8 } from 'millrace';
import { ints, type TextCase } from './text-case.js';

/** Numbers without a pattern. */
const scattered = (length: number, below: number): number[] => Array.from({ length }, (_unused, i) => ((i + 1) * 7919 * 7919) % below);
const N = 5000;
const small = ints(N, (i) => (scattered(N, 1009)[i]! % 19) - 9);
const bytes = Uint8Array.from(scattered(N, 256));
const keys = Uint32Array.from(scattered(512, 65_521));
const bySize = [...keys.keys()].toSorted((a, b) => keys[a]! - keys[b]!);
const shorts = Int16Array.from(scattered(100, 4001), (v) => v - 2000);
const words = Uint32Array.from({ length: 64 }, (_unused, i) => Math.imul(i + 1, 0x9e3779b1) >>> (i % 7));
const lanes = ints(32, (i) => (i * i) % 7);

const total = (values: Int32Array): number => values.reduce((a, b) => a + b, 0);
const popcount = (v: number): number => (v >>> 0).toString(2).replaceAll('0', '').length;
const mask = (of: (lane: number) => boolean): number => lanes.reduce((bits, _v, lane) => (of(lane) ? bits | (2 ** lane) : bits), 0) >>> 0;

function bitsOf(v: number): number[] {
  const big = BigInt(v);
  const inverse = (~v >>> 0) & 0xffff;
  const shifted = Number(((0x12345678n << 7n) | (big >> 25n)) & 0xffffffffn);
  // The signed bytes of v, times 4, 3, 2 and 1.
  const dot = [4, 3, 2, 1].reduce((sum, by, at) => sum + by * ((v << (24 - 8 * at)) >> 24), 100);
  return [
    popcount(v),
    Math.clz32(v),
    v === 0 ? 0 : 32 - Math.clz32(v & -v),
    Number.parseInt(v.toString(2).padStart(32, '0').split('').toReversed().join(''), 2),
    ((inverse << 16) | (v & 0xffff)) >>> 0,
    shifted,
    Number((big * 0x9e3779b9n) >> 32n),
    dot >>> 0,
  ];
}

export const PRIMITIVE_CASES: readonly TextCase[] = [
  {
    file: 'primitives/reduce-last-block',
    kernel: 'sum',
    params: { x: input(f32), partial: output(f32), total: output(f32), n: i32 },
    launch: { grid: 7, block: 128 },
    given: { x: Float32Array.from(small), partial: new Float32Array(7), total: new Float32Array(1), n: N },
    results: { total: Float32Array.of(total(small)) },
  },
  {
    file: 'primitives/scan-look-back',
    kernel: 'scan',
    params: { in: input(i32), out: output(i32), n: i32, prefix: inout(i32), status: inout(i32), ticket: inout(i32) },
    launch: { grid: 20, block: 256 },
    given: { in: small, out: new Int32Array(N), n: N, prefix: new Int32Array(20), status: new Int32Array(20), ticket: new Int32Array(1) },
    results: { out: ints(N, (i) => total(small.subarray(0, i + 1))), status: new Int32Array(20).fill(1) },
  },
  {
    file: 'primitives/histogram-private',
    kernel: 'histogram256',
    params: { data: input(u8), bins: inout(u32), n: u64 },
    launch: { grid: 5, block: 96 },
    given: { data: bytes, bins: new Uint32Array(256), n: N },
    results: { bins: Uint32Array.from({ length: 256 }, (_unused, bin) => bytes.filter((byte) => byte === bin).length) },
  },
  {
    file: 'primitives/bitonic-sort',
    kernel: 'bitonic_sort_shared',
    params: { keys: inout(u32), values: inout(u32), dir: u32 },
    launch: { grid: 1, block: 256 },
    given: { keys, values: Uint32Array.from(keys, (key) => key * 3), dir: 1 },
    results: { keys: keys.toSorted(), values: Uint32Array.from(bySize, (at) => keys[at]! * 3) },
  },
  {
    file: 'primitives/odd-even-sort',
    kernel: 'odd_even',
    params: { x: inout(i16), n: i32 },
    launch: { grid: 1, block: 128, sharedBytes: 256 },
    given: { x: shorts, n: 100 },
    results: { x: shorts.toSorted() },
  },
  {
    file: 'primitives/warp-votes',
    kernel: 'votes',
    params: { x: input(i32), out: output(u32) },
    launch: { grid: 1, block: 32 },
    given: { x: lanes, out: new Uint32Array(192) },
    results: {
      out: Uint32Array.from({ length: 192 }, (_unused, i) => {
        const value = lanes[Math.floor(i / 6)]!;
        const odd = mask((lane) => lanes[lane]! % 2 === 1);
        return [1, Number(lanes.includes(3)), odd, mask((lane) => lanes[lane] === value), 0xffffffff, 1][i % 6]!;
      }),
    },
  },
  {
    file: 'primitives/warp-reduce-functions',
    kernel: 'reduce_functions',
    params: { x: input(i32), out: output(i32) },
    launch: { grid: 1, block: 32 },
    given: { x: small.slice(0, 32), out: new Int32Array(6) },
    results: {
      out: Int32Array.of(
        total(small.subarray(0, 32)),
        Math.min(...small.subarray(0, 32)),
        Math.max(...small.subarray(0, 32)),
        small.subarray(0, 32).reduce((a, b) => a & b),
        small.subarray(0, 32).reduce((a, b) => a | b),
        small.subarray(0, 32).reduce((a, b) => a ^ b),
      ),
    },
  },
  {
    file: 'primitives/integer-functions',
    kernel: 'bits',
    params: { x: input(u32), out: output(u32), n: i32 },
    launch: { grid: 2, block: 48 },
    given: { x: words, out: new Uint32Array(512), n: 64 },
    results: { out: Uint32Array.from([...words].flatMap((v) => bitsOf(v))) },
  },
];

/** The order of what these write is not fixed: it is sorted before it is compared. */
export const UNORDERED_CASES: readonly TextCase[] = [
  {
    file: 'primitives/compact-ballot',
    kernel: 'compact',
    params: { in: input(i32), out: output(i32), count: inout(i32), n: i32, threshold: i32 },
    launch: { grid: 20, block: 256 },
    given: { in: small, out: new Int32Array(N), count: new Int32Array(1), n: N, threshold: 4 },
    results: { out: withZeros(small.filter((v) => v >= 4)), count: Int32Array.of(small.filter((v) => v >= 4).length) },
  },
  {
    file: 'primitives/aggregated-atomics',
    kernel: 'filter_positive',
    params: { dst: output(i32), count: inout(i32), src: input(i32), n: i32 },
    launch: { grid: 3, block: 128 },
    given: { dst: new Int32Array(N), count: new Int32Array(1), src: small, n: N },
    results: { dst: withZeros(small.filter((v) => v > 0)), count: Int32Array.of(small.filter((v) => v > 0).length) },
  },
];

function withZeros(values: Int32Array): Int32Array {
  const all = new Int32Array(N);
  all.set(values);
  return all;
}
