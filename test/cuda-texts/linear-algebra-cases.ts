// Idioms of linear algebra: products, factors, transforms.
import { f32, i32, inout, input, output } from 'millrace';
import { floats, type TextCase } from './text-case.js';

const entry = (i: number): number => ((i * 7919) % 23) / 8 - 1;

/** The product of a matrix with `k` columns and one with `n` columns. */
function product(a: ArrayLike<number>, b: ArrayLike<number>, n: number, k: number): number[] {
  return Array.from({ length: (a.length / k) * n }, (_unused, i) => {
    let sum = 0;
    for (let at = 0; at < k; at++) sum += a[Math.floor(i / n) * k + at]! * b[at * n + (i % n)]!;
    return sum;
  });
}

const [M, N, K] = [64, 96, 24];
const a = floats(M * K, entry);
const b = floats(K * N, (i) => entry(3 * i + 1));

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
    file: 'linear-algebra/matmul-registers',
    kernel: 'sgemm',
    params: { M: i32, N: i32, K: i32, A: input(f32), B: input(f32), C: output(f32) },
    launch: { grid: [N / 32, M / 32], block: 64 },
    given: { M, N, K, A: a, B: b, C: new Float32Array(M * N) },
    results: { C: Float32Array.from(product(a, b, N, K)) },
    tolerance: 1e-5,
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
