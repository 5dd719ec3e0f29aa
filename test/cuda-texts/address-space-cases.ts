// Which memory a pointer points into.
import { f32, i32, input, output } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const N = 32;
const x = floats(N, (i) => (i * 7) % 11);
const [SHARED, GLOBAL, CONSTANT, LOCAL] = [1, 2, 4, 8];
/** Digits, the first one lowest. */
const packed = (digits: readonly number[]): number => digits.reduceRight((sum, digit) => sum * 10 + digit, 0);

export const ADDRESS_SPACE_CASES: readonly TextCase[] = [
  {
    file: 'address-spaces',
    kernel: 'told',
    params: { x: input(f32), y: output(i32) },
    launch: { grid: 1, block: N, sharedBytes: 4 * N },
    given: { x, y: new Int32Array(N) },
    results: { y: ints(N, () => packed([SHARED, SHARED, SHARED, GLOBAL, GLOBAL, CONSTANT, CONSTANT, LOCAL])) },
  },
  {
    file: 'address-spaces',
    kernel: 'told_waiting',
    params: { x: input(f32), y: output(i32) },
    launch: { grid: 1, block: N },
    given: { x, y: new Int32Array(N) },
    results: { y: ints(N, () => packed([SHARED, LOCAL, GLOBAL, CONSTANT])) },
  },
  {
    file: 'address-spaces',
    kernel: 'numbers',
    params: { x: input(f32), y: output(f32), bits: output(i32) },
    launch: { grid: 1, block: N, sharedBytes: 4 * N },
    given: { x, y: new Float32Array(N), bits: new Int32Array(N) },
    results: { y: floats(N, (i) => 3 * x[N - 1 - i]!), bits: ints(N, () => 15) },
  },
];
