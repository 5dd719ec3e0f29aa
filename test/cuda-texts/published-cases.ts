// Idioms of published programs whose host code and kernels share declarations.
import { f32, i32, input, output } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const cells = floats(5 * 7, (i) => i * 1.5 - 4);
const limits = ints(100, (i) => ((i * 31) % 17) - 8);

export const PUBLISHED_CASES: readonly TextCase[] = [
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
    file: 'containers-in-classes',
    kernel: 'turn',
    params: { x: input(i32), y: output(i32), n: i32 },
    launch: { grid: 4, block: 32 },
    given: { x: limits, y: new Int32Array(100), n: 100 },
    results: { y: limits.map((_v, i) => limits[(i + 1) % 100]!) },
  },
];
