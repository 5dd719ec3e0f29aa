// Published idioms with half and bfloat16. Arrays of them are raw bits; all results are compared bit for bit.
import { bf16, f16, f32, i32, inout, input, output, u16 } from 'millrace';
import { BFLOAT16, fused, HALF, narrowed, type SmallFormat, widened } from '../support/half-numbers.js';
import type { TextCase } from './text-case.js';

const bits = (format: SmallFormat, length: number, at: (i: number) => number): Uint16Array =>
  Uint16Array.from({ length }, (_unused, i) => narrowed(format, at(i)));
const halves = (length: number, at: (i: number) => number): Uint16Array => bits(HALF, length, at);
const wide = (half: number): number => widened(HALF, half);
const near = (value: number): number => narrowed(HALF, value);

const ODD = 333;
const x = halves(ODD, (i) => ((i * 37) % 101) / 7 - 5);
const y = halves(ODD, (i) => ((i * 53) % 89) / 11);
const alpha = near(1.7);

const [M, N, K] = [20, 33, 40];
const a = halves(M * K, (i) => ((i * 5) % 17) - 8);
const b = halves(K * N, (i) => ((i * 3) % 13) / 4 - 1);
const c = halves(M * N, (i) => i % 8);

function product(at: number): number {
  const [row, column] = [Math.trunc(at / N), at % N];
  let sum = 0;
  for (let k = 0; k < K; k++) sum += wide(a[row * K + k]!) * wide(b[k * N + column]!);
  return near(0.5 * sum + 2 * wide(c[at]!));
}

const ROWS = 6;
const scores = halves(ROWS * 32, (i) => ((i * 29) % 64) / 9 - 3);

/** Lanes add as the source does: each adds the value of the lane whose number differs in one bit. */
function butterfly(of: readonly number[], add: (p: number, q: number) => number): number {
  let lanes = of;
  for (let mask = 16; mask > 0; mask >>= 1) {
    const before = lanes;
    lanes = before.map((value, lane) => add(value, before[lane ^ mask]!));
  }
  return lanes[0]!;
}

const softmax = Array.from({ length: ROWS }, (_unused, row) => {
  const values = [...scores.subarray(row * 32, row * 32 + 32)].map(wide);
  const most = Math.max(...values);
  const powers = values.map((value) => wide(near(Math.exp(wide(near(value - most))))));
  const sum = butterfly(powers, (p, q) => Math.fround(p + q));
  return powers.map((power) => near(Math.fround(power / sum)));
}).flat();

// Rows whose mean and deviation are exact, so that no rounding of float depends on the order.
const COLUMNS = 16;
const brains = (length: number, at: (i: number) => number): Uint16Array => bits(BFLOAT16, length, at);
const meanOf = (row: number): number => row * 3 - 4;
const deviationOf = (row: number): number => 2 ** (row - 2);
const sideOf = (i: number): number => ((i * 5) % COLUMNS < COLUMNS / 2 ? 1 : -1);
const rows = brains(ROWS * COLUMNS, (i) => {
  const row = Math.trunc(i / COLUMNS);
  return meanOf(row) + deviationOf(row) * sideOf(i % COLUMNS);
});
const gamma = brains(COLUMNS, (i) => 1 + i / 8);
const beta = brains(COLUMNS, (i) => i / 4 - 1);

const added = halves(64, (i) => (i % 7) - 2);
const sumOf = (step: number, from: number): number => {
  let sum = 0;
  for (let i = from; i < added.length; i += step) sum += wide(added[i]!);
  return sum;
};
const bothSums = (format: SmallFormat, sign: number): Uint16Array =>
  Uint16Array.from([0, 1].flatMap((from) => [narrowed(format, sumOf(2, from)), narrowed(format, sign * sumOf(2, from))]));

const lanes = halves(64, (i) => ((i * 31) % 47) / 13);
const pairs = halves(128, (i) => ((i * 11) % 23) / 3);
const brain = brains(64, (i) => ((i * 17) % 29) / 5);
const adds =
  (format: SmallFormat) =>
  (p: number, q: number): number =>
    narrowed(format, widened(format, p) + widened(format, q));

/** The sum that lane 0 gets when each lane adds the value of a later lane. */
function downward(format: SmallFormat, of: Uint16Array): number {
  const sums = [...of];
  for (let offset = 16; offset > 0; offset /= 2)
    for (let lane = 0; lane < offset; lane++) sums[lane] = adds(format)(sums[lane]!, sums[lane + offset]!);
  return sums[0]!;
}
const warps = [0, 1];
const evenOnes = (w: number, odd: number): number[] => Array.from({ length: 32 }, (_unused, lane) => pairs[64 * w + 2 * lane + odd]!);

const LINE = 40;
const line = halves(LINE, (i) => (i % 9) - 4);
const idioms = {
  y: [...line].map((_unused, i) => {
    const clipped = Math.min(Math.max(wide(line[LINE - 1 - i]!), -2), 3);
    return near((clipped === 0 ? 1 : clipped) * 2 - ((i % 3) + 1));
  }),
  swapped: [...line].map((_unused, at) => line[at ^ 1]!),
};

export const HALF_CASES: readonly TextCase[] = [
  {
    file: 'half2-saxpy',
    kernel: 'half2_saxpy',
    params: { n: i32, a: f16, x: input(f16), y: inout(f16) },
    launch: { grid: 2, block: 64 },
    given: { n: ODD, a: wide(alpha), x, y },
    results: { y: Uint16Array.from(x, (value, i) => fused(HALF, alpha, value, y[i]!)) },
  },
  {
    file: 'half-matrix-product',
    kernel: 'half_matrix_product',
    params: { a: input(f16), b: input(f16), c: inout(f16), m: i32, n: i32, k: i32, alpha: f32, beta: f32 },
    launch: { grid: 2 * 3, block: 256 },
    given: { a, b, c, m: M, n: N, k: K, alpha: 0.5, beta: 2 },
    results: { c: Uint16Array.from(c, (_unused, at) => product(at)) },
  },
  {
    file: 'half-softmax',
    kernel: 'half_softmax',
    params: { x: input(f16), y: output(f16), rows: i32 },
    launch: { grid: 2, block: 128 },
    given: { x: scores, y: new Uint16Array(scores.length), rows: ROWS },
    results: { y: Uint16Array.from(softmax) },
  },
  {
    file: 'bfloat16-layer-norm',
    kernel: 'bfloat16_layer_norm',
    params: { x: input(bf16), gamma: input(bf16), beta: input(bf16), y: output(bf16), rows: i32, columns: i32, eps: f32 },
    launch: { grid: 1, block: 32 },
    given: { x: rows, gamma, beta, y: new Uint16Array(rows.length), rows: ROWS, columns: COLUMNS, eps: 0 },
    results: {
      y: brains(rows.length, (i) => sideOf(i % COLUMNS) * widened(BFLOAT16, gamma[i % COLUMNS]!) + widened(BFLOAT16, beta[i % COLUMNS]!)),
    },
  },
  {
    file: 'half-atomics',
    kernel: 'half_atomics',
    params: { x: input(f16), sums: inout(f16), pairs: inout(f16), brain: inout(bf16), brains: inout(u16), n: i32 },
    launch: { grid: 2, block: 32 },
    given: {
      x: added,
      sums: new Uint16Array(4),
      pairs: new Uint16Array(4),
      brain: new Uint16Array(4),
      brains: new Uint16Array(4),
      n: added.length,
    },
    results: {
      sums: halves(4, (from) => sumOf(4, from)),
      pairs: bothSums(HALF, -1),
      brain: brains(4, (from) => sumOf(4, from)),
      brains: bothSums(BFLOAT16, 1),
    },
  },
  {
    file: 'half-warp-sums',
    kernel: 'half_warp_sums',
    params: { x: input(f16), pairs: input(f16), brain: input(bf16), y: output(f16), y2: output(f16), y3: output(bf16) },
    launch: { grid: 1, block: 64 },
    given: { x: lanes, pairs, brain, y: new Uint16Array(2), y2: new Uint16Array(4), y3: new Uint16Array(2) },
    results: {
      y: Uint16Array.from(warps, (w) => downward(HALF, lanes.subarray(32 * w, 32 * w + 32))),
      y2: Uint16Array.from(warps.flatMap((w) => [butterfly(evenOnes(w, 0), adds(HALF)), butterfly(evenOnes(w, 1), adds(HALF))])),
      y3: Uint16Array.from(warps, (w) => downward(BFLOAT16, brain.subarray(32 * w, 32 * w + 32))),
    },
  },
  {
    file: 'half-idioms',
    kernel: 'half_idioms',
    params: { x: input(f16), y: output(f16), bits: output(u16), n: i32 },
    launch: { grid: 1, block: 64 },
    given: { x: line, y: new Uint16Array(2 * LINE), bits: new Uint16Array(LINE + LINE / 8), n: LINE },
    results: {
      y: Uint16Array.from([...idioms.y, ...idioms.swapped]),
      bits: Uint16Array.from([
        ...idioms.y.map((value) => value ^ 1),
        ...Array.from(
          { length: LINE / 8 },
          (_unused, k) => (wide(line[8 * k + 1]!) > 0 ? 0xff : 0) + (wide(line[8 * k]!) > 0 ? 0xff00 : 0),
        ),
      ]),
    },
  },
];
