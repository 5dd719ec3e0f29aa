// Idioms of linear algebra: transposes, products, sparse matrices, factors, transforms.
import { f32, f64, i32, inout, input, output } from 'millrace';
import { doubles, floats, ints, type TextCase } from './text-case.js';

const entry = (i: number): number => ((i * 7919) % 23) / 8 - 1;

/** The product of a matrix with `k` columns and one with `n` columns. */
function product(a: ArrayLike<number>, b: ArrayLike<number>, n: number, k: number): number[] {
  return Array.from({ length: (a.length / k) * n }, (_unused, i) => {
    let sum = 0;
    for (let at = 0; at < k; at++) sum += a[Math.floor(i / n) * k + at]! * b[at * n + (i % n)]!;
    return sum;
  });
}

const [WIDTH, HEIGHT] = [45, 70];
const page = floats(WIDTH * HEIGHT, (i) => i);

const [M, N, K] = [64, 96, 24];
const a = floats(M * K, entry);
const b = floats(K * N, (i) => entry(3 * i + 1));

const SIDE = 24;
const left = doubles(SIDE * SIDE, entry);
const right = doubles(SIDE * SIDE, (i) => entry(5 * i));

// A sparse matrix with 0 to 70 entries a row.
const ROWS = 40;
const lengths = ints(ROWS, (row) => (row * row) % 71);
const rowStarts = ints(ROWS + 1, (row) => lengths.subarray(0, row).reduce((sum, length) => sum + length, 0));
const entries = rowStarts[ROWS]!;
const columns = ints(entries, (i) => (i * 37) % 50);
const values = doubles(entries, (i) => entry(i + 2));
const vector = doubles(50, (i) => entry(7 * i));
const multiplied = doubles(ROWS, (row) => {
  let sum = 0;
  for (let at = rowStarts[row]!; at < rowStarts[row + 1]!; at++) sum += values[at]! * vector[columns[at]!]!;
  return sum;
});

// The first step of an elimination.
const SIZE = 20;
const matrix = floats(SIZE * SIZE, (i) => entry(i) + (i % (SIZE + 1) === 0 ? 6 : 0));
const multipliers = floats(SIZE * SIZE, (i) => (i % SIZE === 0 && i > 0 ? matrix[i]! / matrix[0]! : 0));

// A matrix with a known factor.
const ORDER = 12;
const factor = floats(ORDER * ORDER, (i) => {
  const [row, column] = [Math.floor(i / ORDER), i % ORDER];
  return column > row ? 0 : column === row ? 2 + (row % 3) : ((row * 5 + column * 3) % 7) / 8;
});
const squared = floats(ORDER * ORDER, (i) => {
  let sum = 0;
  for (let k = 0; k < ORDER; k++) sum += factor[Math.floor(i / ORDER) * ORDER + k]! * factor[(i % ORDER) * ORDER + k]!;
  return sum;
});

const UNKNOWNS = 100;
const system = floats(UNKNOWNS * UNKNOWNS, (i) => (i % (UNKNOWNS + 1) === 0 ? 200 : entry(i)));
const goal = floats(UNKNOWNS, entry);
const guess = floats(UNKNOWNS, (i) => entry(3 * i));
const refined = floats(UNKNOWNS, (row) => {
  let sum = goal[row]!;
  for (let j = 0; j < UNKNOWNS; j++) if (j !== row) sum -= system[row * UNKNOWNS + j]! * guess[j]!;
  return sum / system[row * UNKNOWNS + row]!;
});
const moves = floats(2, (block) =>
  Math.max(...refined.slice(64 * block, 64 * block + 64).map((v, i) => Math.abs(v - guess[64 * block + i]!))),
);

const POINTS = 64;
const signal = floats(4 * POINTS, (i) => entry(11 * i));
const spectrum = floats(4 * POINTS, (i) => {
  const [block, k, part] = [Math.floor(i / (2 * POINTS)), Math.floor(i / 2) % POINTS, i % 2];
  let sum = 0;
  for (let n = 0; n < POINTS; n++) {
    const [re, im] = [signal[2 * (block * POINTS + n)]!, signal[2 * (block * POINTS + n) + 1]!];
    const angle = (-2 * Math.PI * k * n) / POINTS;
    sum += part === 0 ? re * Math.cos(angle) - im * Math.sin(angle) : re * Math.sin(angle) + im * Math.cos(angle);
  }
  return sum;
});

export const LINEAR_ALGEBRA_CASES: readonly TextCase[] = [
  {
    file: 'linear-algebra/transpose-padded',
    kernel: 'transposeNoBankConflicts',
    params: { odata: output(f32), idata: input(f32), width: i32, height: i32 },
    launch: { grid: [2, 3], block: [32, 4] },
    given: { odata: new Float32Array(page.length), idata: page, width: WIDTH, height: HEIGHT },
    results: { odata: floats(page.length, (i) => page[(i % HEIGHT) * WIDTH + Math.floor(i / HEIGHT)]!) },
  },
  {
    file: 'linear-algebra/matmul-registers',
    kernel: 'sgemm',
    params: { M: i32, N: i32, K: i32, A: input(f32), B: input(f32), C: output(f32) },
    launch: { grid: [N / 32, M / 32], block: 64 },
    given: { M, N, K, A: a, B: b, C: new Float32Array(M * N) },
    results: { C: Float32Array.from(product(a, b, N, K)) },
    tolerance: 1e-5,
  },
  {
    file: 'linear-algebra/matmul-double-buffer',
    kernel: 'product',
    params: { a: input(f64), b: input(f64), c: output(f64), n: i32 },
    launch: { grid: [3, 3], block: [8, 8] },
    given: { a: left, b: right, c: new Float64Array(SIDE * SIDE), n: SIDE },
    results: { c: Float64Array.from(product(left, right, SIDE, SIDE)) },
    tolerance: 1e-13,
  },
  {
    file: 'linear-algebra/spmv-csr-vector',
    kernel: 'spmv_csr',
    params: { rows_at: input(i32), col: input(i32), val: input(f64), x: input(f64), y: output(f64), rows: i32 },
    launch: { grid: 11, block: 128 },
    given: { rows_at: rowStarts, col: columns, val: values, x: vector, y: new Float64Array(ROWS), rows: ROWS },
    results: { y: multiplied },
    tolerance: 1e-13,
  },
  {
    file: 'linear-algebra/gauss-elimination',
    kernel: 'fan1',
    params: { m: output(f32), a: input(f32), size: i32, t: i32 },
    launch: { grid: 1, block: 64 },
    given: { m: new Float32Array(SIZE * SIZE), a: matrix, size: SIZE, t: 0 },
    results: { m: multipliers },
  },
  {
    file: 'linear-algebra/gauss-elimination',
    kernel: 'fan2',
    params: { m: input(f32), a: inout(f32), b: inout(f32), size: i32, t: i32 },
    launch: { grid: [2, 2], block: [16, 16] },
    given: { m: multipliers, a: matrix, b: goal.slice(0, SIZE), size: SIZE, t: 0 },
    results: {
      a: matrix.map((v, i) => (i < SIZE ? v : v - multipliers[i - (i % SIZE)]! * matrix[i % SIZE]!)),
      b: floats(SIZE, (i) => (i === 0 ? goal[0]! : goal[i]! - multipliers[i * SIZE]! * goal[0]!)),
    },
    tolerance: 1e-5,
  },
  {
    file: 'linear-algebra/cholesky-in-block',
    kernel: 'cholesky',
    params: { a: inout(f32), n: i32 },
    launch: { grid: 1, block: 32 },
    given: { a: squared, n: ORDER },
    results: { a: factor },
    tolerance: 1e-4,
  },
  {
    file: 'linear-algebra/jacobi-graph',
    kernel: 'jacobi',
    params: { A: input(f32), b: input(f32), x: input(f32), x_new: output(f32), change: output(f32), n: i32 },
    launch: { grid: 2, block: 64 },
    given: { A: system, b: goal, x: guess, x_new: new Float32Array(UNKNOWNS), change: new Float32Array(2), n: UNKNOWNS },
    results: { x_new: refined, change: moves },
    tolerance: 1e-5,
  },
  {
    file: 'linear-algebra/fft-radix-2',
    kernel: 'fft',
    params: { data: inout(f32), log_n: i32 },
    launch: { grid: 2, block: 32, sharedBytes: 8 * POINTS },
    given: { data: signal, log_n: 6 },
    results: { data: spectrum },
    tolerance: 1e-4,
  },
];
