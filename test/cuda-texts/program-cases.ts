// Whole programs: their kernels, without the code of the host.
import { f32, i32, inout, input, output } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const N = 100;
const small = floats(N, (i) => (i % 11) - 4.5);
const numbers = ints(N, (i) => ((i * 7919) % 97) - 48);
const ONE = { grid: 1, block: 128 };
const TWO = { grid: 2, block: 64 };
const count = { n: i32 };

export const PROGRAM_CASES: readonly TextCase[] = [
  {
    file: 'whole-program',
    kernel: 'add',
    params: { a: input(f32), b: input(f32), c: output(f32), ...count },
    launch: TWO,
    given: { a: small, b: floats(N, (i) => i), c: new Float32Array(N), n: N },
    results: { c: floats(N, (i) => small[i]! + i) },
  },
  {
    file: 'host-wrappers',
    kernel: 'scale',
    params: { y: inout(f32), by: f32, ...count },
    launch: TWO,
    given: { y: small, by: 2.5, n: N },
    results: { y: small.map((v) => 2.5 * v) },
  },
  {
    file: 'timer-class',
    kernel: 'row_sums',
    params: { x: input(f32), y: output(f32), rows: i32, columns: i32 },
    launch: ONE,
    given: { x: small, y: new Float32Array(10), rows: 10, columns: 10 },
    results: { y: floats(10, (r) => small.subarray(10 * r, 10 * r + 10).reduce((a, b) => a + b, 0)) },
  },
  {
    file: 'helpers-of-both',
    kernel: 'activate',
    params: { x: input(f32), y: output(f32), ...count },
    launch: ONE,
    given: { x: small, y: new Float32Array(N), n: N },
    results: { y: small.map((v) => 1 / (1 + Math.exp(-v)) - 0.5) },
  },
  {
    file: 'streams-and-graphs',
    kernel: 'look_up',
    params: { x: input(i32), y: output(i32), ...count },
    launch: TWO,
    given: { x: numbers, y: new Int32Array(N), n: N },
    results: { y: numbers.map((v) => [3, 1, 4, 1][v & 3]!) },
  },
  {
    file: 'directives-in-main',
    kernel: 'fill',
    params: { y: output(i32), ...count },
    launch: { grid: 1, block: 32 },
    given: { y: new Int32Array(N), n: N },
    results: { y: ints(N, (i) => i % 7) },
  },
  {
    file: 'launched-by-kernels',
    kernel: 'parent',
    params: { y: output(i32), ...count },
    launch: { grid: 1, block: 1 },
    given: { y: new Int32Array(N), n: N },
    results: { y: ints(N, (i) => i) },
  },
  {
    file: 'some-are-absent',
    kernel: 'usual',
    params: { x: input(i32), y: output(i32), ...count },
    launch: ONE,
    given: { x: numbers, y: new Int32Array(N), n: N },
    results: { y: numbers.map((v) => 3 * v) },
  },
];

/** Templates, which nvcc does not build by name. */
export const PROGRAM_TEMPLATE_CASES: readonly TextCase[] = [
  {
    file: 'template-launchers',
    kernel: 'clip<float>',
    params: { y: inout(f32), low: f32, high: f32, ...count },
    launch: TWO,
    given: { y: small, low: -1.5, high: 2, n: N },
    results: { y: small.map((v) => Math.min(Math.max(v, -1.5), 2)) },
  },
  {
    file: 'template-launchers',
    kernel: 'clip<int>',
    params: { y: inout(i32), low: i32, high: i32, ...count },
    launch: TWO,
    given: { y: numbers, low: -10, high: 10, n: N },
    results: { y: numbers.map((v) => Math.min(Math.max(v, -10), 10)) },
  },
];
