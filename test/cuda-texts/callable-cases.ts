// Device functions and functors that wait for other threads and are given to other functions.
import { f32, i32, inout, input, output } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const LANES = 32;
const BLOCK = 128;
const x = floats(2 * BLOCK, (i) => ((i * 37) % 23) - 11);
const part = (i: number, size: number): Float32Array => x.subarray(i - (i % size), i - (i % size) + size);
const sum = (values: Float32Array): number => values.reduce((a, b) => a + b, 0);
const most = (values: Float32Array): number => Math.max(...values);
const at = (i: number): number => x[i]!;

function byName(i: number): number {
  const [warp, block, v] = [part(i, LANES), part(i, BLOCK), at(i)];
  const ones = Math.max(3, most(warp)) + 2 * sum(warp) + 2 * v;
  return most(block) + 10 * sum(block) + 100 * ones + (sum(warp) + 1) + (v + 1) + (most(warp) + 2) + (v + 2) + (sum(warp) + 3);
}
function byFunctor(i: number): number {
  const [s, m] = [sum(part(i, LANES)), most(part(i, LANES))];
  return s + 10 * s + 150 * s + (s + 1) + (1.5 * at(i) + 1) + (m + 1) + m + 2 * s + m + 3 * s + 1.5 * s;
}
function byLambda(i: number): number {
  const block = part(i, BLOCK);
  const turned = floats(BLOCK, (t) => block[(t + 3) % BLOCK]! + 3);
  const t = i % BLOCK;
  const lane = t % LANES;
  const ofWarp = sum(turned.subarray(t - lane, t - lane + LANES));
  const shifted = at(lane < 1 ? i : i - 1) + (lane < 2 ? t : t - 2);
  return ofWarp + (sum(part(i, LANES)) + 1) + shifted + turned[t]!;
}
const deduced = (i: number): number => at(i ^ 1) + at(i ^ 2) + at(i ^ 4) - 2 * at(i);

function pointed(i: number): number {
  const [s, m, v] = [sum(part(i, LANES)), most(part(i, LANES)), at(i)];
  const isFirst = i < BLOCK;
  const both = s + m + 2 * v + 2 * v + m + s + 2 * m + s + m + 1;
  return both + (isFirst ? 3 * s + s + m + 2 * v + 2 * v + 6 * v : 3 * m + 2 * m + s + s + s + 3 * s);
}

const KERNELS: readonly (readonly [kernel: string, of: (i: number) => number])[] = [
  ['by_name', byName],
  ['by_functor', byFunctor],
  ['by_lambda', byLambda],
  ['deduced', deduced],
  ['pointed', pointed],
];

function closures(i: number): number {
  const warp = part(i, LANES);
  return 2 * sum(warp) + (sum(warp) - 2 * LANES + at(i) - 2) + LANES * 3 * sum(warp) + (sum(warp) + 2 * LANES) + 4 * sum(warp);
}
function aggregates(i: number): number {
  const s = sum(part(i, LANES));
  return 2 * s + LANES + (3 * s + 3 * at(i)) + s;
}
function arrays(i: number): number {
  const s = sum(part(i, LANES));
  return s + 2 * LANES + s + (2 * s + 2 * at(i));
}

const OF_OWNERS: readonly (readonly [kernel: string, of: (i: number) => number])[] = [
  ['closures', closures],
  ['aggregates', aggregates],
  ['arrays', arrays],
];

const numbers = ints(96, (i) => (i * 53) % 89);

/** Instances of a template that the source names only in its host code. */
const INSTANCES: readonly TextCase[] = [
  ['reduced<largest>', (i: number): number => numbers.subarray(i & ~31, (i & ~31) + LANES).reduce((a, b) => Math.max(a, b))] as const,
  ['reduced<itself>', (i: number): number => numbers[i]!] as const,
].map(([kernel, of]) => ({
  file: 'callables/instances',
  kernel,
  params: { in: input(i32), out: output(i32) },
  launch: { grid: 3, block: LANES },
  given: { in: numbers, out: new Int32Array(96) },
  results: { out: ints(96, (i) => of(i) * 2 + 1) },
}));

/** The sum of the values of a thread's warp. */
const warpSum = (i: number): number => numbers.subarray(i & ~31, (i & ~31) + LANES).reduce((a, b) => a + b);
const ANYWHERE: readonly ((i: number) => number)[] = [
  (i) => warpSum(i) + 32,
  warpSum,
  (i) => numbers.subarray(i & ~31, (i & ~31) + LANES).reduce((a, b) => a + b * b, 0) + numbers[i]!,
  (i) => numbers[i]! + 1,
  (i) => 2 * warpSum(i) + numbers[i]! + 2 + 32 + 3,
  () => 1 + 96 + 1,
  () => 4 * 32,
];

export const CALLABLE_CASES: readonly TextCase[] = [
  ...KERNELS.map(([kernel, of]) => ({
    file: kernel === 'pointed' ? 'callables/pointers' : 'callables/reductions',
    kernel,
    params: { x: input(f32), y: output(f32) },
    launch: { grid: 2, block: BLOCK },
    given: { x, y: new Float32Array(x.length) },
    results: { y: floats(x.length, of) },
  })),
  ...OF_OWNERS.map(([kernel, of]) => ({
    file: 'callables/owners',
    kernel,
    params: { x: input(f32), y: output(f32), alive: inout(i32) },
    launch: { grid: 2, block: BLOCK },
    given: { x, y: new Float32Array(x.length), alive: new Int32Array(1) },
    // Each object was destroyed, once.
    results: { y: floats(x.length, of), alive: new Int32Array(1) },
  })),
  ...INSTANCES,
  {
    file: 'callables/anywhere',
    kernel: 'anywhere',
    params: { x: input(i32), y: output(i32), left: inout(i32) },
    launch: { grid: 1, block: 96 },
    given: { x: numbers, y: new Int32Array(96 * ANYWHERE.length), left: new Int32Array(1) },
    results: { y: ints(96 * ANYWHERE.length, (i) => ANYWHERE[Math.floor(i / 96)]!(i % 96)), left: Int32Array.of(96) },
  },
];
